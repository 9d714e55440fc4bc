-- Tables, views and functions for the queries of test/pushdown/generate, and the functions that
-- compare their results with and without pushdown.  The layout of the server is twitter.

SET client_min_messages = warning;

-- Collations: one that does not compare bytes, and one that takes upper and lower case as equal.  They are C if
-- PostgreSQL was built without ICU.  "kn" keeps ICU 72 from comparing by a faster way, which contradicts its sort keys if
-- letters are before digits.
DO $$ BEGIN
	CREATE COLLATION unlike (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
	CREATE COLLATION letters_first (provider = icu, locale = 'en-u-kn-kr-latn-digit');
EXCEPTION WHEN feature_not_supported THEN
	CREATE COLLATION unlike FROM "C";
	CREATE COLLATION letters_first FROM "C";
END $$;

-- IDs of 50 days: some in the same millisecond, some in the same tick on other machines.
CREATE TABLE plain AS
SELECT snowflake_encode(timestamptz '2026-03-01 00:00+00' + (n / 3) * interval '30 hours' + (n % 2) * interval '1 ms', n % 3, n % 4) AS id,
       n, 'item ' || n % 7 AS item
FROM generate_series(0, 119) n;
ALTER TABLE plain ADD PRIMARY KEY (id);

CREATE TABLE loose AS SELECT CASE WHEN n % 9 <> 0 THEN id END AS id, n, item FROM plain;
CREATE INDEX ON loose (id NULLS FIRST);
CREATE INDEX ON loose (n, id DESC);

CREATE TABLE bare AS SELECT id, n, item FROM plain WHERE n % 3 = 0;

-- IDs around an hour in which a clock that is set back passes midnight twice, see generate
CREATE TABLE nightly AS SELECT snowflake_encode(timestamptz '2026-03-14 12:00+00' + n * interval '10 minutes', n % 3, n % 4) AS id, n, 'item ' || n % 7 AS item FROM generate_series(0, 119) n;
ALTER TABLE nightly ADD PRIMARY KEY (id);

CREATE DOMAIN order_id AS bigint CHECK (VALUE > 0);
CREATE TABLE domained AS SELECT id::order_id AS id, n, item FROM plain WHERE n % 5 <> 0;
CREATE UNIQUE INDEX ON domained (id);

CREATE TABLE timed AS SELECT id, n, item FROM plain WHERE n % 2 = 0;
CREATE INDEX ON timed (snowflake_timestamp(id, 'twitter'));
CREATE INDEX ON timed (snowflake_timestamp(id, 'twitter'), n, id);
CREATE INDEX ON timed (snowflake_timestamp(id, 'twitter') DESC, id);

CREATE TABLE partial AS SELECT id, n, item FROM plain;
CREATE INDEX ON partial (id);
CREATE INDEX ON partial (n) WHERE snowflake_timestamp(id, 'twitter') >= '2026-03-20 00:00+00';

CREATE TABLE checked (LIKE plain INCLUDING ALL, CHECK (snowflake_timestamp(id, 'twitter') >= '2026-03-10 00:00+00'));
INSERT INTO checked SELECT id, n, item FROM plain WHERE snowflake_timestamp(id) >= '2026-03-10 00:00+00';

-- partitions by the ID, by another column, and by the time
CREATE TABLE parted (id bigint PRIMARY KEY, n integer, item text) PARTITION BY RANGE (id);
SELECT format('CREATE TABLE parted_%s PARTITION OF parted FOR VALUES FROM (%s) TO (%s)', p, snowflake_boundary(at), snowflake_boundary(at + interval '10 days'))
FROM (SELECT p, timestamptz '2026-03-01 00:00+00' + p * interval '10 days' AS at FROM generate_series(0, 3) p) periods \gexec
CREATE TABLE parted_rest PARTITION OF parted DEFAULT PARTITION BY LIST (id);
CREATE TABLE parted_rest_rest PARTITION OF parted_rest DEFAULT;
INSERT INTO parted SELECT id, n, item FROM plain;

-- ranges of which the second begins within a tick, and the last is divided again
CREATE TABLE ranged (id bigint, n integer, item text) PARTITION BY RANGE (id);
SELECT snowflake_boundary('2026-03-11 00:00+00') + 4096 AS second, snowflake_boundary('2026-04-01 00:00+00') AS third, snowflake_boundary('2026-04-15 00:00+00') AS fourth \gset
CREATE TABLE ranged_1 PARTITION OF ranged FOR VALUES FROM (MINVALUE) TO (:second);
CREATE TABLE ranged_2 PARTITION OF ranged FOR VALUES FROM (:second) TO (:third);
CREATE TABLE ranged_3 PARTITION OF ranged FOR VALUES FROM (:third) TO (MAXVALUE) PARTITION BY RANGE (id, n);
CREATE TABLE ranged_3_1 PARTITION OF ranged_3 FOR VALUES FROM (:third, MINVALUE) TO (:fourth, 0);
CREATE TABLE ranged_3_2 PARTITION OF ranged_3 FOR VALUES FROM (:fourth, 0) TO (MAXVALUE, MAXVALUE);
CREATE INDEX ON ranged (id, item);
CREATE INDEX ON ranged (item, (n % 10), id);
CREATE INDEX ON ranged_1 (snowflake_timestamp(id, 'twitter'), n DESC);
CREATE INDEX ON ranged_2 (snowflake_timestamp(id, 'twitter'), n DESC);
CREATE INDEX ON ranged_3 (snowflake_timestamp(id, 'twitter'), n DESC);
INSERT INTO ranged SELECT id, n, item FROM plain;

CREATE TABLE listed (id bigint, n integer, item text) PARTITION BY LIST (item);
CREATE TABLE listed_1 PARTITION OF listed FOR VALUES IN ('item 0', 'item 1', 'item 2');
CREATE TABLE listed_2 PARTITION OF listed FOR VALUES IN ('item 3', 'item 4');
CREATE TABLE listed_rest PARTITION OF listed DEFAULT;
CREATE INDEX ON listed (id);
CREATE INDEX ON listed_2 (snowflake_timestamp(id, 'twitter'));
INSERT INTO listed SELECT id, n, item FROM loose;

CREATE TABLE hashed (id bigint PRIMARY KEY, n integer, item text) PARTITION BY HASH (id);
CREATE TABLE hashed_0 PARTITION OF hashed FOR VALUES WITH (MODULUS 3, REMAINDER 0);
CREATE TABLE hashed_1 PARTITION OF hashed FOR VALUES WITH (MODULUS 3, REMAINDER 1);
CREATE TABLE hashed_2 PARTITION OF hashed FOR VALUES WITH (MODULUS 3, REMAINDER 2);
INSERT INTO hashed SELECT id, n, item FROM plain;

CREATE TABLE timely (id bigint, n integer, item text) PARTITION BY RANGE (snowflake_timestamp(id, 'twitter'));
CREATE TABLE timely_1 PARTITION OF timely FOR VALUES FROM (MINVALUE) TO ('2026-03-15 00:00+00');
CREATE TABLE timely_2 PARTITION OF timely FOR VALUES FROM ('2026-03-15 00:00+00') TO (MAXVALUE);
CREATE INDEX ON timely (id);
INSERT INTO timely SELECT id, n, item FROM plain;

-- the time behind another column, in an index and in partition keys; a constraint beside partitions by the ID
CREATE TABLE ranked (LIKE plain INCLUDING ALL);
CREATE INDEX ON ranked (item, snowflake_timestamp(id, 'twitter'), n);
INSERT INTO ranked SELECT id, n, item FROM plain;
CREATE TABLE nested (id bigint CHECK (snowflake_timestamp(id, 'twitter') >= '2020-01-01 00:00+00'), n integer, item text) PARTITION BY RANGE (n);
CREATE TABLE nested_1 PARTITION OF nested FOR VALUES FROM (MINVALUE) TO (60) PARTITION BY RANGE (snowflake_timestamp(id, 'twitter'));
CREATE TABLE nested_1_1 PARTITION OF nested_1 FOR VALUES FROM (MINVALUE) TO ('2026-03-15 00:00+00');
CREATE TABLE nested_1_2 PARTITION OF nested_1 DEFAULT;
CREATE TABLE nested_2 PARTITION OF nested DEFAULT PARTITION BY RANGE (id);
CREATE TABLE nested_2_1 PARTITION OF nested_2 FOR VALUES FROM (MINVALUE) TO (2031158371196108800);
CREATE TABLE nested_2_2 PARTITION OF nested_2 DEFAULT;
CREATE INDEX ON nested (id);
CREATE INDEX ON nested_2_2 (snowflake_timestamp(id, 'twitter'));
INSERT INTO nested SELECT id, n, item FROM plain;

-- inheritance
CREATE TABLE parent (id bigint, n integer, item text);
CREATE TABLE child_1 (CHECK (id < 2031158371196108800)) INHERITS (parent);
CREATE TABLE child_2 (CHECK (snowflake_timestamp(id, 'twitter') >= '2026-03-10 00:00+00'), extra integer) INHERITS (parent);
CREATE INDEX ON child_1 (id);
CREATE INDEX ON child_2 (snowflake_timestamp(id, 'twitter'));
INSERT INTO parent SELECT id, n, item FROM plain WHERE n % 4 = 0;
INSERT INTO child_1 SELECT id, n, item FROM plain WHERE n % 4 = 1 AND id < 2031158371196108800;
INSERT INTO child_2 SELECT id, n, item, n FROM plain WHERE n % 4 = 2 AND snowflake_timestamp(id) >= '2026-03-10 00:00+00';

-- row-level security
SELECT 'CREATE ROLE random_reader' WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'random_reader') \gexec
CREATE TABLE secret AS SELECT id, n, item FROM plain;
ALTER TABLE secret ADD PRIMARY KEY (id);
ALTER TABLE secret ENABLE ROW LEVEL SECURITY;
CREATE POLICY visible ON secret USING (n % 3 <> 0 AND snowflake_timestamp(id) < '2026-04-10 00:00+00') WITH CHECK (true);
CREATE POLICY third ON secret FOR SELECT USING (item = 'item 3');

-- a table of another server, which is this one; a local table if postgres_fdw is not installed
CREATE TABLE near AS SELECT id, n, item FROM plain;
CREATE INDEX ON near (id);
SELECT count(*) > 0 AS has_fdw FROM pg_available_extensions WHERE name = 'postgres_fdw' \gset
\if :has_fdw
CREATE EXTENSION postgres_fdw;
SELECT format('CREATE SERVER this FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host %L, port %L, dbname %L, extensions %L)',
	split_part(current_setting('unix_socket_directories'), ',', 1), current_setting('port'), current_database(), 'snowflake') \gexec
SELECT format('CREATE USER MAPPING FOR PUBLIC SERVER this OPTIONS (user %L, password_required %L)', current_user, 'false') \gexec
CREATE FOREIGN TABLE far (id bigint, n integer, item text) SERVER this OPTIONS (table_name 'near');
\else
CREATE TABLE far AS SELECT id, n, item FROM near;
\endif

-- rows whose layouts differ, with nulls; layouts by number; and layouts that are no layouts
CREATE TABLE layouts AS
SELECT l, lay FROM unnest('{twitter,discord,NULL,sonyflake,instagram}'::text[]) WITH ORDINALITY u (lay, l);
CREATE TABLE labeled AS SELECT id, n, item, lay FROM plain LEFT JOIN layouts ON l = n % 6;
ALTER TABLE labeled ADD PRIMARY KEY (id);
CREATE TABLE mislabeled AS SELECT id, n, item, CASE n % 40 WHEN 7 THEN 'nonsense' WHEN 9 THEN 'javascript' ELSE lay END AS lay FROM labeled;
ALTER TABLE mislabeled ADD PRIMARY KEY (id);
CREATE TABLE vacant AS SELECT * FROM labeled LIMIT 0;
ALTER TABLE vacant ADD PRIMARY KEY (id);

-- IDs of type sno
CREATE TABLE ids AS
SELECT sno_encode(timestamptz '2026-03-01 00:00+00' + (n / 3) * interval '30 hours' + (n % 2) * interval '4 ms', n % 5, n % 2, n, n % 4 = 0) AS id, n, 'item ' || n % 7 AS item
FROM generate_series(0, 119) n;
CREATE UNIQUE INDEX ON ids (id);

-- instants
CREATE TABLE days AS
SELECT d, timestamptz '2026-03-01 00:00+00' + d * interval '60 hours' AS day, date '2026-03-01' + d * 2 AS date, timestamp '2026-03-01 06:00' + d * interval '3 days' AS local
FROM generate_series(0, 15) d;
INSERT INTO days (d) VALUES (NULL);
INSERT INTO days SELECT 100 + n, snowflake_timestamp(id) FROM plain WHERE n % 40 = 0;

-- a view with the key and one without it, for each table
SELECT format('CREATE VIEW v_%1$s AS SELECT id, %2$s_timestamp(id) AS created_at, n, item FROM %1$s', name, CASE name WHEN 'ids' THEN 'sno' ELSE 'snowflake' END),
       format('CREATE VIEW k_%1$s AS SELECT %2$s_timestamp(id) AS created_at, n, item FROM %1$s', name, CASE name WHEN 'ids' THEN 'sno' ELSE 'snowflake' END)
FROM unnest('{plain,loose,bare,nightly,domained,timed,partial,checked,parted,ranged,listed,hashed,timely,ranked,nested,parent,secret,far,ids}'::text[]) name \gexec

-- views whose keys are texts, for each table
SELECT format('CREATE VIEW t_%1$s AS SELECT snowflake_to_base32(id)%2$s AS key, snowflake_timestamp(id) AS created_at, n, item FROM %1$s', name, suffix)
FROM unnest('{plain,loose,bare,domained,partial,parted,hashed,secret,far,parent}'::text[],
	ARRAY[' COLLATE "C"', ' COLLATE "C"', '', ' COLLATE "C"', ' COLLATE unlike', ' COLLATE "C"', ' COLLATE letters_first', '', ' COLLATE "C"', ' COLLATE "POSIX"']) u (name, suffix) \gexec
CREATE VIEW t_all AS SELECT * FROM t_plain UNION ALL SELECT * FROM t_parted UNION ALL SELECT snowflake_to_base32(id) COLLATE "C", NULL, n, item FROM loose;
CREATE VIEW t_barrier WITH (security_barrier) AS SELECT * FROM t_plain WHERE n % 4 <> 1;

-- views that are more complex
CREATE VIEW v_outer AS SELECT id, created_at, n, item FROM v_plain WHERE n > 3;
CREATE VIEW v_named AS SELECT id AS id, snowflake_timestamp(id, 'twitter') AS created_at, n, item FROM loose;
CREATE VIEW v_decoded AS SELECT id, (snowflake_decode(id)).created_at, n, item FROM plain;
CREATE VIEW v_all AS
SELECT id, snowflake_timestamp(id) AS created_at, n, item FROM plain
UNION ALL SELECT id, snowflake_timestamp(id), n, item FROM loose WHERE n < 100
UNION ALL SELECT * FROM v_parted
UNION ALL SELECT id, snowflake_timestamp(id), n, item FROM secret;
CREATE VIEW v_mixed AS
SELECT id::bigint AS id, created_at, n, item FROM v_domained
UNION ALL SELECT max(id), max(snowflake_timestamp(id)), n, min(item) FROM plain GROUP BY n
UNION ALL SELECT NULL, day, d::integer, 'day' FROM days;
CREATE VIEW v_union AS SELECT id, snowflake_timestamp(id) AS created_at, n, item FROM plain UNION SELECT id, snowflake_timestamp(id), n, item FROM bare;
CREATE VIEW v_intersect AS SELECT id, snowflake_timestamp(id) AS created_at, n, item FROM loose INTERSECT SELECT id, snowflake_timestamp(id), n, item FROM plain;
CREATE VIEW v_except AS SELECT id, snowflake_timestamp(id) AS created_at, n, item FROM plain EXCEPT ALL SELECT id, snowflake_timestamp(id), n, item FROM bare;
CREATE VIEW v_barrier WITH (security_barrier) AS SELECT id, snowflake_timestamp(id) AS created_at, n, item FROM plain WHERE n % 4 <> 1;
CREATE VIEW v_barrier_all WITH (security_barrier) AS SELECT * FROM v_all WHERE n % 4 <> 2;
CREATE VIEW v_in_barrier AS SELECT id, created_at, n, item FROM v_barrier WHERE n > 2;
CREATE VIEW v_grouped AS SELECT max(id) AS id, max(snowflake_timestamp(id)) AS created_at, n % 10 AS n, min(item) AS item FROM loose GROUP BY n % 10;
CREATE VIEW v_by_time AS SELECT min(id) AS id, snowflake_timestamp(id) AS created_at, max(n) AS n, min(item) AS item FROM plain GROUP BY snowflake_timestamp(id);
CREATE VIEW v_distinct AS SELECT DISTINCT ON (item) id, snowflake_timestamp(id) AS created_at, n, item FROM parted ORDER BY item, snowflake_timestamp(id) DESC, id;
CREATE VIEW v_numbered AS SELECT id, snowflake_timestamp(id) AS created_at, (row_number() OVER (ORDER BY snowflake_timestamp(id), id))::integer AS n, item FROM plain;
CREATE VIEW v_latest AS SELECT id, snowflake_timestamp(id) AS created_at, n, item FROM plain ORDER BY snowflake_timestamp(id) DESC, id DESC LIMIT 40;
CREATE VIEW v_joined AS SELECT b.id, snowflake_timestamp(b.id) AS created_at, a.n, a.item FROM plain a LEFT JOIN bare b ON a.n = b.n AND snowflake_timestamp(b.id) < '2026-04-01 00:00+00';
CREATE VIEW v_coalesced AS SELECT coalesce(a.id, b.id) AS id, snowflake_timestamp(coalesce(a.id, b.id)) AS created_at, coalesce(a.n, b.n) AS n, a.item FROM loose a FULL JOIN bare b ON a.id = b.id;
CREATE VIEW v_padded AS SELECT a.id, snowflake_timestamp(b.id) AS created_at, a.n, coalesce(b.item, 'none') AS item FROM plain a LEFT JOIN (SELECT id, n, item, 1 AS one FROM bare) b USING (n);
CREATE VIEW v_newest AS SELECT id, snowflake_timestamp(id) + interval '0' AS created_at, n, item FROM plain ORDER BY snowflake_timestamp(id) DESC, id DESC LIMIT 60;
CREATE VIEW v_barrier_secret WITH (security_barrier) AS SELECT id, created_at, n, item FROM v_secret WHERE n % 4 <> 3;
-- views whose layouts differ from row to row
CREATE VIEW v_labeled AS SELECT id, snowflake_timestamp(id, lay) AS created_at, n, item, lay FROM labeled;
CREATE VIEW v_labels AS SELECT id, snowflake_timestamp(id, lay) AS created_at, n, item, lay FROM plain JOIN layouts ON l = n % 6;
CREATE VIEW v_label AS SELECT id, (snowflake_decode(id, lay)).created_at, n, item, lay FROM plain, layouts WHERE l = 3;
CREATE VIEW v_barrier_labels WITH (security_barrier) AS SELECT * FROM v_labels WHERE n % 4 <> 1;

-- functions that are inlined
CREATE FUNCTION rows_of_plain() RETURNS TABLE (id bigint, created_at timestamptz, n integer, item text) LANGUAGE sql STABLE
BEGIN ATOMIC SELECT id, snowflake_timestamp(id), n, item FROM plain; END;
CREATE FUNCTION rows_since(since timestamptz) RETURNS TABLE (id bigint, created_at timestamptz, n integer, item text) LANGUAGE sql STABLE
BEGIN ATOMIC SELECT id, snowflake_timestamp(id), n, item FROM parted WHERE snowflake_timestamp(id) >= since; END;
CREATE FUNCTION time_of(id bigint) RETURNS timestamptz LANGUAGE sql STABLE RETURN snowflake_timestamp(id);
CREATE FUNCTION time_in(id bigint, layout text) RETURNS timestamptz LANGUAGE sql IMMUTABLE RETURN snowflake_timestamp(id, layout);
CREATE FUNCTION is_late(at timestamptz, n integer) RETURNS boolean LANGUAGE sql STABLE RETURN at > '2026-03-25 00:00+00' OR n = 3;
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO random_reader;
VACUUM ANALYZE;

/* A statement as it is executed: with values for its parameters, two instants, a layout, a text and an array, once it is prepared. */
CREATE FUNCTION prepared(statement text, way text, parameters text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	IF way NOT IN ('generic', 'custom') THEN
		RETURN statement;
	END IF;
	PERFORM set_config('plan_cache_mode', format('force_%s_plan', way), true);
	EXECUTE 'PREPARE random_query (timestamptz, timestamptz, text, text, text[]) AS ' || statement;
	RETURN 'EXECUTE random_query ' || parameters;
END $$;

CREATE FUNCTION unprepare() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	IF EXISTS (SELECT 1 FROM pg_prepared_statements WHERE name = 'random_query') THEN
		DEALLOCATE random_query;
	END IF;
END $$;

/*
 * The rows of a statement as text, in its order; or the SQLSTATE of its error.  Its changes are
 * undone, after the rows of the changed table have been added.
 */
CREATE FUNCTION results(statement text, way text, parameters text, changed text) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
	result text[] := '{}';
	line record;
	lines refcursor;
	after text[];
BEGIN
	BEGIN
		statement := prepared(statement, way, parameters);
		IF way = 'backward' THEN
			OPEN lines SCROLL FOR EXECUTE statement;
			MOVE LAST FROM lines;
			MOVE NEXT FROM lines;
			LOOP
				FETCH PRIOR FROM lines INTO line;
				EXIT WHEN NOT FOUND;
				result := line::text || result;
			END LOOP;
			CLOSE lines;
		ELSIF way = 'inner' THEN
			EXECUTE format('SELECT array_agg(q::text) FROM (%s) q', statement) INTO result;
		ELSIF way = 'run' THEN
			EXECUTE statement;
		ELSIF way = 'table' THEN
			EXECUTE 'CREATE TEMPORARY TABLE made AS ' || statement;
			SELECT array_agg(made::text) INTO result FROM made;
		ELSIF way = 'current' THEN
			OPEN lines FOR EXECUTE statement;
			LOOP
				FETCH lines INTO line;
				EXIT WHEN NOT FOUND;
				result := result || line::text;
				EXECUTE format('UPDATE %I SET n = n + 3000 WHERE CURRENT OF %I', changed, lines);
			END LOOP;
			CLOSE lines;
		ELSE
			FOR line IN EXECUTE statement LOOP
				result := result || line::text;
			END LOOP;
		END IF;
		IF changed <> '' THEN
			RESET ROLE;
			EXECUTE format('SELECT array_agg(t::text ORDER BY t::text) FROM %I t', changed) INTO after;
			result := result || 'after: '::text || after;
		END IF;
		RAISE EXCEPTION USING ERRCODE = 'UNDO0';
	EXCEPTION
		WHEN SQLSTATE 'UNDO0' THEN NULL;
		WHEN OTHERS THEN result := ARRAY[SQLSTATE, SQLERRM];
	END;
	PERFORM unprepare();
	RETURN coalesce(result, '{}');
END $$;

CREATE FUNCTION plan_of(statement text, way text, parameters text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	result text := '';
	line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || prepared(statement, way, parameters) LOOP
		result := result || line || E'\n';
	END LOOP;
	PERFORM unprepare();
	RETURN result;
EXCEPTION
	WHEN OTHERS THEN
		PERFORM unprepare();
		RETURN SQLSTATE;
END $$;

/* The first columns of a row, as text: the sort keys, which the statement has as one array. */
CREATE FUNCTION keys(line text) RETURNS text LANGUAGE sql IMMUTABLE
RETURN substring(line FROM '\{[^}]*\}');

/*
 * Compares a statement with and without pushdown.  Rows are compared in any order, and sort keys
 * in theirs; of a statement that leaves open which rows LIMIT takes, only sort keys.
 */
CREATE TABLE outcomes (number integer, statement text, way text, rows integer, failed text, rewritten boolean, same boolean);
GRANT ALL ON outcomes TO random_reader;

CREATE PROCEDURE compare(number integer, statement text, way text, parameters text, ordered boolean, open_limit boolean, changed text, as_role text)
LANGUAGE plpgsql AS $$
DECLARE
	got_on text[];
	got_off text[];
	plan_on text;
	plan_off text;
	same boolean;
BEGIN
	PERFORM set_config('role', as_role, true);
	PERFORM set_config('snowflake.enable_timestamp_pushdown', 'on', true);
	plan_on := plan_of(statement, way, parameters);
	got_on := results(statement, way, parameters, changed);
	PERFORM set_config('role', as_role, true);
	PERFORM set_config('snowflake.enable_timestamp_pushdown', 'off', true);
	plan_off := plan_of(statement, way, parameters);
	got_off := results(statement, way, parameters, changed);
	RESET ROLE;
	same := (open_limit OR ARRAY(SELECT l FROM unnest(got_on) l ORDER BY l) = ARRAY(SELECT l FROM unnest(got_off) l ORDER BY l))
		AND (NOT ordered OR ARRAY(SELECT keys(l) FROM unnest(got_on) WITH ORDINALITY u (l, o) ORDER BY o)
			= ARRAY(SELECT keys(l) FROM unnest(got_off) WITH ORDINALITY u (l, o) ORDER BY o));
	-- a comparison of texts of two collations raises an error, if the plan gets as far as to execute it
	same := same OR '42P22' IN (got_on[1], got_off[1]);
	INSERT INTO outcomes VALUES (number, statement, way, cardinality(got_off), CASE WHEN got_off[1] ~ '^[0-9A-Z]{5}$' THEN got_off[1] || ' ' || got_off[2] END, plan_on <> plan_off, same);
	IF NOT same THEN
		RAISE WARNING E'query % differs (%, as %):\n%\nwith pushdown: %\n%\nwithout: %\n%', number, way, as_role, statement, got_on, plan_on, got_off, plan_off;
	END IF;
END $$;
