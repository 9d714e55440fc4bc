-- The view pg_stat_snowflake, against what this session does.
SELECT pg_stat_snowflake_reset();
SELECT generator, batches, ids_allocated, overflow_ticks, waits, wait_time, clock_regressions, max_regression, reservation_writes, reservation_write_time
FROM pg_stat_snowflake WHERE generator = 'bigint';

SELECT count(snowflake_nextval()) AS ids FROM generate_series(1, 100000);
SELECT generator,
       machine_id = snowflake_machine_id(snowflake_currval()) AS machine_id,
       layout = current_setting('snowflake.layout') AS layout,
       batches BETWEEN 100000 / 64 AND 100000 AS batches,
       ids_allocated BETWEEN 100000 AND 64 * batches AS ids_allocated,
       overflow_ticks BETWEEN 0 AND 100000 / 4096 AS overflow_ticks,
       clock_regressions, max_regression,
       ahead BETWEEN '0' AND '10 ms' AS ahead,
       reserved_until > snowflake_timestamp(snowflake_currval()) AND reserved_until < now() + interval '10 s' AS reserved_until,
       floor < snowflake_timestamp(snowflake_currval()) AS floor,
       reservation_writes >= 0 AND (reservation_writes > 0 OR reservation_write_time = 0) AS reservation_writes,
       (SELECT exhausted_at FROM snowflake_layouts WHERE name = layout) = exhausted_at AS exhausted_at,
       stats_reset BETWEEN now() - interval '1 minute' AND now() AS stats_reset
FROM pg_stat_snowflake WHERE generator = 'bigint' \gx

-- a floor that the generator has passed changes nothing
SELECT snowflake_set_floor(now() - interval '1 min');
-- it is moved back only to an earlier time
SELECT snowflake_move_back('2070-01-01 00:00Z');
-- the floor moved past the reservation: the reservation is extended above it; the caller waits,
-- and takes one batch
SELECT pg_stat_snowflake_reset();
SELECT snowflake_set_floor(clock_timestamp() + interval '3 s');
SELECT floor = reserved_until AS nothing_reserved, floor >= stats_reset + interval '2.999 s' AS floor,
       ahead BETWEEN floor - clock_timestamp() AND '3001 ms' AS ahead, reservation_writes, waits
FROM pg_stat_snowflake WHERE generator = 'bigint';
-- if the machine is slow, the call begins after the floor: then it does not wait, and the ID has the time of the clock
SELECT at >= floor AND at <= greatest(floor, clock_timestamp()) AS id, began > floor - interval '100 ms' AS late
FROM (SELECT clock_timestamp() AS began, snowflake_timestamp(snowflake_nextval()) AS at, floor
      FROM pg_stat_snowflake WHERE generator = 'bigint' OFFSET 0) s \gset
SELECT :'id'::boolean AS id, batches, reserved_until BETWEEN floor + interval '1 s' AND greatest(floor, clock_timestamp()) + interval '1.001 s' AS reserved,
       reservation_writes, reservation_write_time > 0 AS reservation_write_time, waits = 1 OR :'late' AS waits,
       wait_time >= 1 AND wait_time <= extract(epoch FROM clock_timestamp() - floor + interval '3 s') * 1000 OR :'late' AS wait_time
FROM pg_stat_snowflake WHERE generator = 'bigint';

-- privileges: members of pg_monitor can read it, superusers can reset it
CREATE ROLE regress_snowflake_user;
CREATE ROLE regress_snowflake_monitor IN ROLE pg_monitor;
SET ROLE regress_snowflake_monitor;
SELECT generator FROM pg_stat_snowflake;
SELECT pg_stat_snowflake_reset();
SET ROLE regress_snowflake_user;
SELECT generator FROM pg_stat_snowflake;
SELECT * FROM pg_stat_snowflake();
SELECT pg_stat_snowflake_reset();
RESET ROLE;
DROP ROLE regress_snowflake_user, regress_snowflake_monitor;

-- the columns: each new one has to be added here
SELECT attrelid::regclass AS view, attname, atttypid::regtype AS type
FROM pg_attribute WHERE attrelid IN ('pg_stat_snowflake'::regclass, 'pg_stat_snowflake_horizon'::regclass, 'snowflake_layouts'::regclass) AND attnum > 0
ORDER BY attrelid::regclass::text, attnum;
-- a function that declares more or fewer of them than the library has
CREATE FUNCTION fewer(OUT generator text, OUT machine_id integer) RETURNS SETOF record AS '$libdir/snowflake', 'pg_stat_snowflake' LANGUAGE C;
SELECT count(*) FROM fewer();
SELECT format('CREATE FUNCTION more(%s, OUT new bigint) RETURNS SETOF record AS %L, %L LANGUAGE C',
              pg_get_function_arguments('pg_stat_snowflake()'::regprocedure), '$libdir/snowflake', 'pg_stat_snowflake') \gexec
SELECT count(*) FROM more();
DROP FUNCTION fewer, more;
