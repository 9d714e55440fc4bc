-- The horizon, the guard and the view of a feed: how they are called, and what they refuse.  Their effect is
-- tested in specs/horizon.spec and t/017_horizon.pl.
\set SHOW_CONTEXT never
CREATE TABLE feed (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), body text);

-- in a statement of its own, in the statement that reads, in a view, in a cursor, in functions and in each isolation level
INSERT INTO feed DEFAULT VALUES;
SELECT snowflake_horizon() AS horizon \gset
SELECT count(*) FROM feed WHERE id < :horizon;
SELECT count(*) FROM feed WHERE id < snowflake_horizon();
SELECT provolatile, proparallel FROM pg_proc WHERE proname = 'snowflake_horizon';
CREATE VIEW new_rows AS SELECT * FROM feed WHERE id < (SELECT snowflake_horizon());
SELECT count(*) FROM new_rows;
CREATE FUNCTION count_rows() RETURNS bigint LANGUAGE plpgsql STABLE AS 'BEGIN RETURN (SELECT count(*) FROM new_rows); END';
SELECT count_rows();
COPY (SELECT count(*) FROM new_rows) TO stdout;
DO $$
DECLARE
	horizon bigint := snowflake_horizon();
BEGIN
	RAISE NOTICE '%', (SELECT count(*) FROM feed WHERE id < horizon);
END
$$;
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT count(*) FROM new_rows;
COMMIT;
BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY;
DECLARE new_rows CURSOR FOR SELECT id > 0 FROM new_rows;
FETCH new_rows;
COMMIT;
-- a transaction does not see the horizon pass its own IDs
BEGIN;
INSERT INTO feed DEFAULT VALUES;
SELECT count(*) FROM new_rows;
ROLLBACK;
-- the previous call
\set VERBOSITY sqlstate
CALL snowflake_horizon();
\set VERBOSITY default
DROP VIEW new_rows;
DROP FUNCTION count_rows;

-- the guard: a table with a key, and others
SELECT snowflake_enable_feed('feed');
SELECT snowflake_enable_feed('feed');
SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE tgrelid = 'feed'::regclass;
CREATE DOMAIN feed_id AS bigint;
CREATE TABLE others (a bigint, "The ID" feed_id, event sno, n integer, gone bigint);
ALTER TABLE others DROP COLUMN gone;
SELECT snowflake_enable_feed('others', 'The ID');
SELECT snowflake_enable_feed('others', 'a');
SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE tgrelid = 'others'::regclass;
SELECT snowflake_enable_feed('others');
SELECT snowflake_enable_feed('others', 'event');
SELECT snowflake_enable_feed('others', 'n');
SELECT snowflake_enable_feed('others', 'gone');
SELECT snowflake_enable_feed('others', 'tableoid');
SELECT snowflake_enable_feed(NULL);
CREATE TABLE generated (a bigint, id bigint PRIMARY KEY GENERATED ALWAYS AS (a) STORED);
SELECT snowflake_enable_feed('generated');
CREATE TABLE two (a bigint, b bigint, PRIMARY KEY (a, b));
SELECT snowflake_enable_feed('two');
CREATE TABLE parts (id bigint PRIMARY KEY DEFAULT snowflake_nextval()) PARTITION BY RANGE (id);
CREATE TABLE part PARTITION OF parts DEFAULT;
SELECT snowflake_enable_feed('parts');
CREATE VIEW seen AS SELECT * FROM feed;
SELECT snowflake_enable_feed('seen', 'id');

-- triggers that would be called after the guard and could change the ID, on the table and on a partition
CREATE FUNCTION lower_id() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.id := 5; RETURN NEW; END';
CREATE TABLE ordered (id bigint PRIMARY KEY) PARTITION BY RANGE (id);
CREATE TABLE ordered_all PARTITION OF ordered DEFAULT;
CREATE TRIGGER zzzz BEFORE INSERT ON ordered_all FOR EACH ROW EXECUTE FUNCTION lower_id();
SELECT snowflake_enable_feed('ordered');
\echo :SQLSTATE
ALTER TRIGGER zzzz ON ordered_all RENAME TO "zz Z";
CREATE TRIGGER zzzz AFTER INSERT OR UPDATE ON ordered FOR EACH ROW EXECUTE FUNCTION lower_id();
CREATE TRIGGER zzzy BEFORE DELETE ON ordered FOR EACH ROW EXECUTE FUNCTION lower_id();
CREATE TRIGGER zzzx BEFORE INSERT ON ordered FOR EACH STATEMENT EXECUTE FUNCTION lower_id();
SELECT snowflake_enable_feed('ordered');
CREATE TRIGGER zz_snowflake_feed_guard2 BEFORE UPDATE ON ordered FOR EACH ROW EXECUTE FUNCTION lower_id();
SELECT snowflake_enable_feed('ordered');
SELECT snowflake_enable_feed('ordered_all');
DROP TABLE ordered;

-- IDs that other sessions have issued, that were fetched ahead, and that were chosen
SELECT snowflake_horizon() AS horizon \gset
\set VERBOSITY terse
INSERT INTO feed VALUES (1, 'chosen');
INSERT INTO parts VALUES (:horizon - 1);
COPY feed FROM stdin;
-1	copied
\.
UPDATE feed SET id = id - 1;
UPDATE feed SET body = 'another column';
UPDATE feed SET id = id;
CREATE TRIGGER lower_id BEFORE UPDATE ON feed FOR EACH ROW EXECUTE FUNCTION lower_id();
UPDATE feed SET body = 'by a trigger';
DROP TRIGGER lower_id ON feed;
INSERT INTO feed VALUES (:horizon + 1000000000000, 'later than all');
INSERT INTO feed (body) SELECT 'issued' FROM generate_series(1, 3);
INSERT INTO parts SELECT snowflake_nextvals(3);
SELECT count(*) FROM feed;

-- one that was refused, in a transaction that continues
BEGIN;
SAVEPOINT a;
INSERT INTO feed VALUES (1, 'chosen');
ROLLBACK TO a;
INSERT INTO feed (body) VALUES ('issued');
SELECT count(*) FROM pg_stat_snowflake_horizon WHERE pid = pg_backend_pid() AND first_id > :horizon;
COMMIT;

-- partitions whose columns are in another order: each has its own number of the column
CREATE TABLE moved (id bigint NOT NULL, other bigint, half int NOT NULL) PARTITION BY LIST (half);
CREATE TABLE moved_1 PARTITION OF moved FOR VALUES IN (1);
CREATE TABLE moved_2 (other bigint, half int NOT NULL, id bigint NOT NULL);
ALTER TABLE moved ATTACH PARTITION moved_2 FOR VALUES IN (2);
SELECT snowflake_enable_feed('moved', 'id');
INSERT INTO moved SELECT id, 1, half FROM unnest(ARRAY[1, 2, 1, 2]) AS half, snowflake_nextvals(1) AS id;
INSERT INTO moved VALUES (:horizon + 1000000000000, 1, 1), (1, :horizon + 1000000000000, 2);
INSERT INTO moved VALUES (:horizon + 1000000000000, 1, 2), (1, :horizon + 1000000000000, 1);
SELECT count(*) FROM moved;

-- a trigger that was created by hand
\set VERBOSITY default
CREATE TABLE by_hand (id bigint);
CREATE TRIGGER after_row AFTER INSERT ON by_hand FOR EACH ROW EXECUTE FUNCTION snowflake_feed_guard('id');
INSERT INTO by_hand VALUES (1);
DROP TRIGGER after_row ON by_hand;
CREATE TRIGGER of_statement BEFORE INSERT ON by_hand FOR EACH STATEMENT EXECUTE FUNCTION snowflake_feed_guard('id');
INSERT INTO by_hand VALUES (1);
DROP TRIGGER of_statement ON by_hand;
CREATE TRIGGER no_argument BEFORE INSERT ON by_hand FOR EACH ROW EXECUTE FUNCTION snowflake_feed_guard();
INSERT INTO by_hand VALUES (1);
DROP TRIGGER no_argument ON by_hand;
CREATE TRIGGER no_column BEFORE INSERT ON by_hand FOR EACH ROW EXECUTE FUNCTION snowflake_feed_guard('ID');
INSERT INTO by_hand VALUES (1);
DROP TRIGGER no_column ON by_hand;
ALTER TABLE by_hand ALTER id TYPE integer;
CREATE TRIGGER wrong_type BEFORE INSERT ON by_hand FOR EACH ROW EXECUTE FUNCTION snowflake_feed_guard('id');
INSERT INTO by_hand VALUES (1);
SELECT snowflake_feed_guard();

-- guard and view in one call: names that need quotes, a column that is added later, a partitioned and a temporary table
CREATE SCHEMA "Shop";
CREATE TABLE "Shop"."Orders" ("The ID" bigint PRIMARY KEY DEFAULT snowflake_nextval(), item text);
SELECT snowflake_enable_feed('"Shop"."Orders"', view => 'New Orders');
SELECT reloptions FROM pg_class WHERE oid = '"Shop"."New Orders"'::regclass;
SELECT tgname FROM pg_trigger WHERE tgrelid = '"Shop"."Orders"'::regclass;
ALTER TABLE "Shop"."Orders" ADD COLUMN n integer DEFAULT 1;
INSERT INTO "Shop"."Orders" (item) VALUES ('a'), ('b');
SELECT * FROM "Shop"."New Orders" WHERE false;
SELECT snowflake_enable_feed('"Shop"."Orders"', 'The ID', 'New Orders');
SELECT item, n FROM "Shop"."New Orders" ORDER BY "The ID";
BEGIN;
INSERT INTO "Shop"."Orders" (item) VALUES ('own');
SELECT item FROM "Shop"."New Orders" ORDER BY "The ID";
ROLLBACK;
ALTER TABLE "Shop"."Orders" DROP COLUMN n;
SELECT snowflake_enable_feed('parts', view => 'new_parts');
CREATE TEMPORARY TABLE temporary_feed (id bigint PRIMARY KEY);
-- from 19 on the message has a detail
\set VERBOSITY terse
SELECT snowflake_enable_feed('temporary_feed', view => 'new_temporary_rows');
\set VERBOSITY default
SELECT count(*) FROM new_temporary_rows;
-- the name of a table, of another view, and of a view with other columns
SELECT snowflake_enable_feed('"Shop"."Orders"', view => 'Orders');
SELECT snowflake_enable_feed('feed', view => 'seen');
ALTER VIEW seen RENAME COLUMN body TO text;
SELECT snowflake_enable_feed('feed', view => 'seen');
-- the rows of another server, also as a partition
CREATE FOREIGN DATA WRAPPER nowhere;
CREATE SERVER elsewhere FOREIGN DATA WRAPPER nowhere;
CREATE FOREIGN TABLE remote (id bigint) SERVER elsewhere;
SELECT snowflake_enable_feed('remote', 'id');
SELECT snowflake_enable_feed('remote', 'id', 'new_remote');
CREATE TABLE shards (id bigint) PARTITION BY RANGE (id);
CREATE FOREIGN TABLE shard PARTITION OF shards DEFAULT SERVER elsewhere;
SELECT snowflake_enable_feed('shards', 'id', 'new_shards');
-- nor of one that Citus distributes, as its catalog says
SET allow_system_table_mods = on;
CREATE TABLE pg_catalog.pg_dist_partition (logicalrelid regclass);
INSERT INTO pg_dist_partition VALUES ('feed');
SELECT snowflake_enable_feed('feed', view => 'new_distributed');
\echo :SQLSTATE
DROP TABLE pg_catalog.pg_dist_partition;
RESET allow_system_table_mods;
-- the reader's privileges and policies apply, and the key is used
CREATE ROLE feed_reader;
GRANT USAGE ON SCHEMA "Shop" TO feed_reader;
GRANT SELECT ON "Shop"."New Orders" TO feed_reader;
SET ROLE feed_reader;
SELECT item FROM "Shop"."New Orders";
RESET ROLE;
GRANT SELECT ON "Shop"."Orders" TO feed_reader;
ALTER TABLE "Shop"."Orders" ENABLE ROW LEVEL SECURITY;
CREATE POLICY of_b ON "Shop"."Orders" USING (item = 'b');
SET ROLE feed_reader;
SELECT item FROM "Shop"."New Orders";
SET enable_seqscan = off;
SET enable_bitmapscan = off;
DO $$
DECLARE
	line text;
BEGIN
	FOR line IN EXPLAIN SELECT item FROM "Shop"."New Orders" WHERE "The ID" > 1 ORDER BY "The ID" LIMIT 100 LOOP
		IF line LIKE '%Index Cond: (("The ID" < %) AND ("The ID" > 1))' THEN
			RAISE NOTICE 'the key is used';
		END IF;
	END LOOP;
END
$$;
RESET enable_seqscan;
RESET enable_bitmapscan;
RESET ROLE;
-- another role's table
GRANT TRIGGER ON "Shop"."Orders" TO feed_reader;
SET ROLE feed_reader;
SELECT snowflake_enable_feed('"Shop"."Orders"', view => 'Mine');
RESET ROLE;
SELECT tgname FROM pg_trigger WHERE tgrelid = '"Shop"."Orders"'::regclass;

DROP OWNED BY feed_reader;
DROP ROLE feed_reader;
DROP FOREIGN DATA WRAPPER nowhere CASCADE;
DROP SCHEMA "Shop" CASCADE;
DROP TABLE shards, temporary_feed CASCADE;
DROP TABLE feed, others, generated, two, parts, moved, by_hand CASCADE;
DROP DOMAIN feed_id;
DROP FUNCTION lower_id;
