-- The type sno: input and output, order, indexes, parts.  The values are those that the Go
-- library printed (test/vectors).
SET timezone = 'UTC';
SET datestyle = 'ISO';

SELECT typlen, typalign, typstorage, typbyval FROM pg_type WHERE typname = 'sno';
SELECT sno '2222222222222222' AS least, sno 'xxxxxxxxxxxxxxxx' AS greatest, sno 'brpk4q72xwf2m63l' AS some;
SELECT pg_column_size(sno '2222222222222222') AS size, pg_column_size(row_of) - pg_column_size(row_of_nothing) AS in_a_row
FROM (SELECT ROW('a'::"char", sno '2222222222222222', 'b'::"char") AS row_of, ROW('a'::"char", 'b'::"char") AS row_of_nothing) r;

-- invalid input
SELECT sno 'brpk4q72xwf2m63';
\echo :SQLSTATE
SELECT sno 'brpk4q72xwf2m63ll';
SELECT sno 'brpk4q72xwf2m63L';
SELECT sno 'brpk4q72xwf2m630';
SELECT sno 'brpk4q72xwf2m63y';
SELECT sno ' rpk4q72xwf2m63l';
SELECT sno '';
SELECT current_setting('server_version_num')::integer >= 160000 AS has_soft_errors \gset
\if :has_soft_errors
SELECT sql_error_code, pg_input_is_valid('brpk4q72xwf2m63l', 'sno') AS valid FROM pg_input_error_info('brpk4q72xwf2m63y', 'sno') \gset
\else
\set sql_error_code 22P02
\set valid t
\endif
\echo :sql_error_code :valid

-- conversion to other types, and back
SELECT id::text AS text, id::text::sno = id AS back, id::bytea AS bytea, id::bytea::sno = id AS back, sno_send(id) AS binary,
       sno_to_uuid(id) AS uuid, sno_from_uuid(sno_to_uuid(id)) = id AS back, to_json(id) AS json
FROM (VALUES (sno '2222222222222222'), ('xxxxxxxxxxxxxxxx'), ('brpk4q72xwf2m63l')) AS ids (id);
SELECT id FROM json_populate_record(NULL::record, '{"id": "brpk4q72xwf2m63l"}') AS r (id sno);
SELECT '\x4e6f2160a0ff9a0a10'::bytea::sno;
\echo :SQLSTATE
SELECT sno_from_uuid('6272706b-3471-3732-7877-66326d36337a');
\echo :SQLSTATE
CREATE TABLE ids (id sno);
INSERT INTO ids SELECT sno_from_bytea(decode(substr(md5(n::text), 1, 20), 'hex')) FROM generate_series(1, 100000) n;
CREATE TABLE copied (LIKE ids);
\copy ids TO 'results/sno.binary' (FORMAT binary)
\copy copied FROM 'results/sno.binary' (FORMAT binary)
SELECT count(*) AS same FROM ids JOIN copied USING (id);

-- order: of bytes, by all operators
SELECT a, b, a < b AS lt, a <= b AS le, a = b AS eq, a <> b AS ne, a >= b AS ge, a > b AS gt, sno_cmp(a, b) < 0 AS less,
       sno_smaller(a, b) AS smaller, sno_larger(a, b) AS larger
FROM (VALUES (sno 'brpk4q72xwf2m63l', sno 'brpk4q72xwf2m63m'), ('brpk4q72xwf2m63l', 'brpk4q72xwf2m63l'),
             ('brpk4q72xwf2m63l', '2rpk4q72xwf2m63l')) AS pairs (a, b);
SELECT count(*) AS pairs,
       count(*) FILTER (WHERE (a < b) <> (a::bytea < b::bytea) OR (a = b) <> (a::bytea = b::bytea) OR (a < b) = (a >= b)
                           OR (a <= b) = (a > b) OR (a = b) = (a <> b) OR (a < b) <> (sno_to_uuid(a) < sno_to_uuid(b))
                           OR (a < b) <> (a::text COLLATE "C" < b::text)) AS wrong
FROM (SELECT id AS a, lag(id) OVER () AS b FROM ids) p WHERE b IS NOT NULL;

-- sorts, in memory and on disk; of IDs that differ in the sequence alone as well
CREATE TABLE busy AS
SELECT sno_encode('2026-11-21', n % 3, 7 + n % 2, n) AS id FROM generate_series(0, 65535) n ORDER BY random();
SELECT count(*), count(*) FILTER (WHERE before::bytea >= id::bytea) AS wrong FROM (SELECT id, lag(id) OVER (ORDER BY id) AS before FROM ids) s;
SELECT count(*), count(*) FILTER (WHERE before::bytea >= id::bytea) AS wrong FROM (SELECT id, lag(id) OVER (ORDER BY id) AS before FROM busy) s;
SELECT count(*), count(*) FILTER (WHERE before::bytea <= id::bytea) AS wrong FROM (SELECT id, lag(id) OVER (ORDER BY id DESC) AS before FROM busy) s;
SET work_mem = '64kB';
SELECT count(*), count(*) FILTER (WHERE before::bytea >= id::bytea) AS wrong FROM (SELECT id, lag(id) OVER (ORDER BY id) AS before FROM busy) s;
RESET work_mem;
SELECT min(id) = (SELECT id FROM busy ORDER BY id LIMIT 1) AS min, max(id) = (SELECT id FROM busy ORDER BY id DESC LIMIT 1) AS max FROM busy;

-- indexes
SELECT amname, opcname, amvalidate(c.oid) FROM pg_opclass c JOIN pg_am a ON a.oid = opcmethod WHERE opcname LIKE 'sno%' ORDER BY amname, opcname;
ALTER TABLE ids ADD PRIMARY KEY (id);
CREATE INDEX ids_hash ON ids USING hash (id);
CREATE INDEX busy_brin ON busy USING brin (id);
VACUUM ANALYZE ids, busy;
INSERT INTO ids SELECT min(id) FROM ids;
\echo :SQLSTATE
SET enable_seqscan = off;
SET enable_bitmapscan = off;
EXPLAIN (COSTS OFF) SELECT * FROM ids WHERE id >= 'brpk4q72xwf2m63l' ORDER BY id LIMIT 3;
RESET enable_bitmapscan;
EXPLAIN (COSTS OFF) SELECT * FROM busy WHERE id > 'brpk4q72xwf2m63l';
SELECT count(*) FROM busy WHERE id >= sno_encode('2026-11-21', 1, 0, 0) AND id < sno_encode('2026-11-21', 2, 0, 0);
RESET enable_seqscan;
DROP INDEX ids_hash;
SET enable_mergejoin = off;
SET enable_nestloop = off;
SELECT count(*) FROM ids JOIN copied USING (id);
RESET enable_mergejoin;
RESET enable_nestloop;
SELECT count(DISTINCT sno_hash(id)) > 99900 AS spread, count(DISTINCT sno_hash_extended(id, 1)) = 100000 AS spread_extended,
       bool_and(sno_hash_extended(id, 0) & 4294967295 = sno_hash(id)::bigint & 4294967295) AS agree FROM ids;

-- estimates for ranges are near the number of rows
CREATE FUNCTION estimate(query text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE plan json;
BEGIN
    EXECUTE 'EXPLAIN (FORMAT json) ' || query INTO plan;
    RETURN (plan -> 0 -> 'Plan' ->> 'Plan Rows')::bigint;
END
$$;
CREATE TABLE year AS
SELECT sno_encode(timestamptz '2026-01-01' + n * interval '300 s', 0, 1, 0) AS id FROM generate_series(1, 100000) n;
ANALYZE year;
SELECT from_at, rows, abs(estimate(format('SELECT * FROM year WHERE id >= %L AND id < %L', sno_boundary(from_at), sno_boundary(from_at + interval '30 days'))) - rows) < 1500 AS near
FROM (VALUES (timestamptz '2026-03-01'), ('2026-06-15'), ('2027-01-01')) AS months (from_at),
     LATERAL (SELECT count(*) AS rows FROM year WHERE id >= sno_boundary(from_at) AND id < sno_boundary(from_at + interval '30 days')) AS counted;

-- parts
SELECT sno_decode('brpk4q72xwf2m63l'), sno_timestamp('brpk4q72xwf2m63l'), sno_metabyte('brpk4q72xwf2m63l'), sno_partition('brpk4q72xwf2m63l'),
       sno_sequence('brpk4q72xwf2m63l');
SELECT * FROM sno_decode('xxxxxxxxxxxxxxxx');
SELECT sno_encode('2031-05-08T23:03:34.976Z', 255, 39434, 4147) AS id, sno_encode('2031-05-08T23:03:34.979999Z', 255, 39434, 4147, false) AS same,
       sno_encode('2079-09-07T15:47:35.548Z', 255, 65535, 65535, true) AS last;
SELECT count(*) AS wrong FROM (SELECT id, (sno_decode(id)).* FROM ids) d
WHERE sno_encode(created_at, metabyte, partition, sequence, tick_tock) <> id OR created_at <> sno_timestamp(id) OR metabyte <> sno_metabyte(id)
   OR partition <> sno_partition(id) OR sequence <> sno_sequence(id);
SELECT sno_encode('2009-12-31 23:59:59.999', 0, 0, 0);
\echo :SQLSTATE
SELECT sno_encode('2079-09-07 15:47:35.552', 0, 0, 0);
SELECT sno_encode('infinity', 0, 0, 0);
SELECT sno_encode('2026-11-21', 256, 0, 0);
\echo :SQLSTATE
SELECT sno_encode('2026-11-21', -1, 0, 0);
SELECT sno_encode('2026-11-21', 0, 65536, 0);
SELECT sno_encode('2026-11-21', 0, 0, 65536);

-- boundaries
SELECT at, sno_boundary(at) FROM (VALUES (timestamptz '-infinity'), ('2010-01-01'), ('2010-01-01 00:00:00.000001'), ('2026-11-21'),
    ('2079-09-07 15:47:35.548'), ('2079-09-07 15:47:35.548001'), ('infinity')) AS instants (at);
SELECT count(*) AS wrong FROM (SELECT id, sno_timestamp(lag(id) OVER ()) + interval '1 us' * (random() * 4 - 2)::integer AS at FROM ids) b
WHERE (id >= sno_boundary(at)) <> (sno_timestamp(id) >= at);

DROP FUNCTION estimate;
DROP TABLE ids, copied, busy, year;
