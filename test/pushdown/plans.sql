-- Tables of 20,000 rows for the queries of test/pushdown/plans, and the procedure that compares
-- their plans with and without pushdown.  The layout of the server is twitter.

SET client_min_messages = warning;
SET TimeZone = 'UTC';

CREATE TABLE big AS
SELECT snowflake_encode(timestamptz '2026-01-01' + n * interval '10 minutes', n % 4, n % 5) AS id,
       (hashint4(n) & 255) % 200 AS customer, (hashint4(n + 7) & 3) AS tenant, 'item ' || n % 1000 AS item
FROM generate_series(0, 19999) n;
ALTER TABLE big ADD PRIMARY KEY (id);
CREATE TABLE small AS
SELECT snowflake_encode(timestamptz '2026-02-01' + n * interval '50 hours', 1, 0) AS id, n AS customer, n % 4 AS tenant, 'item ' || n AS item
FROM generate_series(0, 9) n;
ALTER TABLE small ADD PRIMARY KEY (id);

-- the time in indexes, behind another column and in front of one, and alone
CREATE TABLE ranked (LIKE big INCLUDING ALL);
CREATE INDEX ON ranked (customer, snowflake_timestamp(id, 'twitter'));
CREATE TABLE timed (LIKE big INCLUDING ALL);
CREATE INDEX ON timed (snowflake_timestamp(id, 'twitter'), customer);
CREATE TABLE keyless (LIKE big);
CREATE INDEX ON keyless (snowflake_timestamp(id, 'twitter'));
CREATE INDEX ON keyless (customer);
-- in the predicate of an index
CREATE TABLE lately (LIKE big INCLUDING ALL);
CREATE INDEX ON lately (item) WHERE snowflake_timestamp(id, 'twitter') >= '2026-05-01';
-- in partition keys and constraints
CREATE TABLE rented (LIKE big) PARTITION BY LIST (tenant);
SELECT format('CREATE TABLE rented_%1$s PARTITION OF rented FOR VALUES IN (%1$s) PARTITION BY RANGE (snowflake_timestamp(id, ''twitter''))', n)
FROM generate_series(0, 3) n \gexec
SELECT format('CREATE TABLE rented_%1$s_%2$s PARTITION OF rented_%1$s FOR VALUES FROM (%3$L) TO (%4$L)', n, m,
	timestamptz '2026-01-01' + m * interval '10 days', timestamptz '2026-01-01' + (m + 1) * interval '10 days')
FROM generate_series(0, 3) n, generate_series(0, 13) m \gexec
CREATE INDEX ON rented (id);
CREATE TABLE limited (LIKE big, CHECK (snowflake_timestamp(id, 'twitter') >= '2020-01-01')) PARTITION BY RANGE (id);
SELECT format('CREATE TABLE limited_%s PARTITION OF limited FOR VALUES FROM (%s) TO (%s)', m,
	snowflake_boundary(timestamptz '2026-01-01' + m * interval '10 days'), snowflake_boundary(timestamptz '2026-01-01' + (m + 1) * interval '10 days'))
FROM generate_series(0, 13) m \gexec
CREATE INDEX ON limited (id);
CREATE INDEX ON limited (customer);
CREATE TABLE older (LIKE big, CHECK (snowflake_timestamp(id, 'twitter') < '2026-02-01'));
CREATE TABLE heirs (LIKE big);
ALTER TABLE older INHERIT heirs;
CREATE INDEX ON heirs (snowflake_timestamp(id, 'twitter'));
CREATE INDEX ON older (id);
-- on the text of the ID, of kinds that conditions do not use
CREATE TABLE coded (LIKE big INCLUDING ALL);
CREATE INDEX ON coded (snowflake_to_base32(id) text_pattern_ops);
CREATE INDEX ON coded USING hash (snowflake_to_base32(id));
SELECT format('INSERT INTO %I SELECT * FROM big', name) FROM unnest('{ranked,timed,keyless,lately,rented,limited,coded}'::text[]) name \gexec
INSERT INTO older SELECT * FROM big WHERE snowflake_timestamp(id) < '2026-02-01';
INSERT INTO heirs SELECT * FROM big WHERE snowflake_timestamp(id) >= '2026-02-01';
CREATE VIEW everything AS SELECT * FROM big UNION ALL SELECT * FROM ranked UNION ALL SELECT * FROM small;
CREATE VIEW barred WITH (security_barrier) AS SELECT * FROM timed WHERE tenant <> 1;

-- the same rows with the time in the ID alone, and in a column: as one table, in ranges of time, in parts by hash, and in all of them
CREATE TABLE ordered AS SELECT * FROM big;
CREATE TABLE ordered_dated AS SELECT snowflake_timestamp(id, 'twitter') AS created_at, customer, tenant, item FROM big;
CREATE TABLE in_ranges (LIKE ordered) PARTITION BY RANGE (id);
CREATE TABLE in_ranges_dated (LIKE ordered_dated) PARTITION BY RANGE (created_at);
CREATE TABLE in_hashes (LIKE ordered) PARTITION BY HASH (customer);
CREATE TABLE in_hashes_dated (LIKE ordered_dated) PARTITION BY HASH (customer);
SELECT format('CREATE TABLE in_ranges_%1$s PARTITION OF in_ranges FOR VALUES FROM (%2$s) TO (%3$s)', m, snowflake_boundary(at), snowflake_boundary(at + interval '10 days')),
	format('CREATE TABLE in_ranges_dated_%1$s PARTITION OF in_ranges_dated FOR VALUES FROM (%2$L) TO (%3$L)', m, at, at + interval '10 days')
FROM (SELECT m, timestamptz '2026-01-01' + m * interval '10 days' AS at FROM generate_series(0, 13) m) ranges \gexec
SELECT format('CREATE TABLE in_hashes%1$s_%2$s PARTITION OF in_hashes%1$s FOR VALUES WITH (MODULUS 4, REMAINDER %2$s)', form, n)
FROM generate_series(0, 3) n, unnest('{"",_dated}'::text[]) form \gexec
SELECT format('INSERT INTO %1$s SELECT * FROM ordered', name), format('INSERT INTO %1$s_dated SELECT * FROM ordered_dated', name) FROM unnest('{in_ranges,in_hashes}'::text[]) name \gexec
SELECT format('CREATE INDEX ON %1$s (id)', name), format('CREATE INDEX ON %1$s (customer, id)', name),
	format('CREATE INDEX ON %1$s_dated (created_at)', name), format('CREATE INDEX ON %1$s_dated (customer, created_at)', name)
FROM unnest('{ordered,in_ranges,in_hashes}'::text[]) name \gexec
CREATE VIEW everywhere AS SELECT * FROM ordered UNION ALL SELECT * FROM in_ranges UNION ALL SELECT * FROM in_hashes;
CREATE VIEW everywhere_dated AS SELECT * FROM ordered_dated UNION ALL SELECT * FROM in_ranges_dated UNION ALL SELECT * FROM in_hashes_dated;
VACUUM ANALYZE;

/*
 * What a query takes: the pages that it reads; its work, which is these pages and, at 0.01 each as
 * the planner counts them, the rows that all nodes of its plan return or remove; and its time.
 */
CREATE TYPE effort AS (pages bigint, work float8, ms float8);
CREATE FUNCTION effort(query text, pushdown boolean) RETURNS effort LANGUAGE plpgsql AS $$
DECLARE
	explained jsonb;
BEGIN
	PERFORM set_config('snowflake.enable_timestamp_pushdown', pushdown::text, true);
	EXECUTE 'EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) ' || query INTO explained;
	RETURN (
		SELECT (pages, pages + 0.01 * (
			SELECT sum((node -> 'Actual Loops')::float8 * ((node -> 'Actual Rows')::float8 +
				coalesce((node -> 'Rows Removed by Filter')::float8, 0) +
				coalesce((node -> 'Rows Removed by Join Filter')::float8, 0) +
				coalesce((node -> 'Rows Removed by Index Recheck')::float8, 0)))
			FROM jsonb_path_query(explained, 'strict $.** ? (exists(@."Node Type"))') AS node),
			explained -> 0 -> 'Execution Time')::effort
		FROM (SELECT (p -> 'Shared Hit Blocks')::bigint + (p -> 'Shared Read Blocks')::bigint AS pages
			FROM (SELECT explained -> 0 -> 'Plan' AS p) plans) read);
END $$;

CREATE FUNCTION plan_of(query text, pushdown boolean) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	line text;
	plan text := '';
BEGIN
	PERFORM set_config('snowflake.enable_timestamp_pushdown', pushdown::text, true);
	FOR line IN EXECUTE 'EXPLAIN ' || query LOOP
		plan := plan || line || E'\n';
	END LOOP;
	RETURN plan;
END $$;

/*
 * A plan with pushdown is worse if its work exceeds the work of the plan without pushdown by more
 * than 8 pages.  The planner's estimates are not compared.
 */
CREATE TABLE plans (number integer, query text, worse boolean, slower boolean, fewer_pages boolean);
CREATE PROCEDURE compare(number integer, query text) LANGUAGE plpgsql AS $$
DECLARE
	plain effort := effort(query, false);
	pushed effort := effort(query, true);
	worse boolean := pushed.work > plain.work + 8;
	slower boolean := pushed.ms > plain.ms * 2 + 0.5 AND (effort(query, true)).ms > (effort(query, false)).ms * 2 + 0.5;
BEGIN
	INSERT INTO plans VALUES (number, query, worse, slower, pushed.pages + 8 < plain.pages);
	IF worse THEN
		RAISE WARNING E'query %: work of % and %, % and % ms\n%\nwith pushdown:\n%without:\n%',
			number, pushed.work, plain.work, pushed.ms, plain.ms, query, plan_of(query, true), plan_of(query, false);
	END IF;
END $$;

/*
 * A plan is worse as well if it reads more than four times the pages of the plan for the same rows
 * with a column created_at.
 */
CREATE PROCEDURE compare_with_dated(number integer, query text, dated_query text) LANGUAGE plpgsql AS $$
DECLARE
	dated effort := effort(dated_query, true);
	pushed effort := effort(query, true);
	worse boolean := pushed.pages > 4 * dated.pages;
BEGIN
	INSERT INTO plans VALUES (number, query, worse, false, pushed.pages + 8 < (effort(query, false)).pages);
	IF worse THEN
		RAISE WARNING E'query %: % pages, and % with created_at\n%\n%\nwith created_at:\n%',
			number, pushed.pages, dated.pages, query, plan_of(query, true), plan_of(dated_query, true);
	END IF;
END $$;
