/* snowflake--1.0--1.1.sql */

-- complain if script is sourced in psql, rather than via ALTER EXTENSION
\echo Use "ALTER EXTENSION snowflake UPDATE TO '1.1'" to load this file. \quit

/*
 * Decoding
 */

CREATE FUNCTION snowflake_is_valid(id bigint) RETURNS boolean
AS 'MODULE_PATHNAME', 'snowflake_is_valid'
LANGUAGE C STABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION snowflake_is_valid(bigint) IS
'whether a number is a Snowflake ID in the layout of snowflake.layout: neither negative nor too large for the layout, so that snowflake_decode() accepts it; says nothing about whether it was issued';

CREATE FUNCTION snowflake_is_valid(id bigint, layout text) RETURNS boolean
AS 'MODULE_PATHNAME', 'snowflake_is_valid'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION snowflake_is_valid(bigint, text) IS
'whether a number is a Snowflake ID in the given layout: neither negative nor too large for the layout, so that snowflake_decode() accepts it; says nothing about whether it was issued';

/*
 * Retention of partitions
 *
 * The functions are written as snowflake_create_partitions() is, and for the same reasons.
 */

/*
 * The first lock is the one that snowflake_create_partitions() takes.  It keeps the partitions as
 * they are while their bounds are read, and if there is nothing to detach, no reader or writer of
 * the table is blocked.  DETACH PARTITION takes the stronger locks.
 *
 * Bounds are compared, not times: a partition ends at or before an instant if its upper bound is
 * not above the boundary there.  MAXVALUE and the default partition have no such bound.  Bounds at
 * or below the first ID are left alone: partitions of negative keys have no time.
 *
 * A transaction that keeps its snapshot can see, in pg_inherits, partitions that other
 * transactions have detached or dropped meanwhile.  pg_partition_ancestors() uses no snapshot.  It
 * leaves out partitions that are pending detach, for which DETACH PARTITION raises an error.
 */
CREATE FUNCTION snowflake_detach_partitions(parent regclass, before timestamptz)
RETURNS SETOF regclass
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	extension_schema CONSTANT regnamespace := (SELECT extnamespace FROM pg_extension WHERE extname = 'snowflake');
	missing CONSTANT text := CASE WHEN parent IS NULL THEN 'parent' WHEN before IS NULL THEN 'before' END;
	key name;
	prefix text;
	partition regclass;
BEGIN
	IF missing IS NOT NULL THEN
		RAISE EXCEPTION USING ERRCODE = 'null_value_not_allowed', MESSAGE = format('argument "%s" must not be null', missing);
	ELSIF NOT isfinite(before) OR before > clock_timestamp() THEN
		RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
			MESSAGE = 'argument "before" must be finite and not in the future',
			DETAIL = format('It is %s.', before);
	END IF;
	EXECUTE format('SELECT %s.snowflake_lock_table($1, false)', extension_schema) USING parent;
	SELECT k.attname INTO key
	FROM pg_partitioned_table p
		JOIN pg_attribute k ON k.attrelid = p.partrelid AND k.attnum = p.partattrs[0]
		JOIN pg_opclass o ON o.oid = p.partclass[0]
	WHERE p.partrelid = parent AND p.partstrat = 'r' AND p.partnatts = 1 AND o.opcdefault;
	EXECUTE format('SELECT %s.snowflake_function_prefix($1, $2)', extension_schema) INTO prefix USING parent, key;
	IF prefix IS NULL THEN
		RAISE EXCEPTION USING ERRCODE = 'wrong_object_type',
			MESSAGE = format('"%s" is not partitioned by range of a column of type bigint or sno', parent),
			HINT = 'Give the table that is partitioned by the IDs, which can itself be a partition.';
	END IF;

	FOR partition IN
		EXECUTE format('SELECT partition FROM (SELECT inhrelid::regclass AS partition,'
			'   substring(pg_get_expr(c.relpartbound, c.oid) FROM $re$ TO [(]''(.*)''[)]$re$)::%1$s.%2$s AS end_id'
			'  FROM pg_inherits JOIN pg_class c ON c.oid = inhrelid'
			'  WHERE inhparent = $1 AND (inhdetachpending OR'
			'   EXISTS (SELECT FROM pg_partition_ancestors(inhrelid) WHERE relid = $1))) AS partitions'
			' WHERE end_id OPERATOR(%1$s.>) %3$s.%4$s_boundary(''-infinity'') AND end_id OPERATOR(%1$s.<=) %3$s.%4$s_boundary($2)'
			' ORDER BY end_id',
			CASE prefix WHEN 'sno' THEN extension_schema ELSE 'pg_catalog' END, CASE prefix WHEN 'sno' THEN 'sno' ELSE 'int8' END,
			extension_schema, prefix)
		USING parent, before
	LOOP
		EXECUTE format('ALTER TABLE %s DETACH PARTITION %s', parent, partition);
		RETURN NEXT partition;
	END LOOP;
END
$$;

COMMENT ON FUNCTION snowflake_detach_partitions(regclass, timestamptz) IS
'detaches the partitions that end at or before an instant, which must not be in the future, from a table that is partitioned by range of Snowflake IDs, and returns them, the oldest first; requires ownership of the table; if there are any, locks the table, each of them and the default partition in ACCESS EXCLUSIVE mode, otherwise the table in SHARE UPDATE EXCLUSIVE mode';

/*
 * A partition is detached before it is dropped.  DETACH PARTITION fails if the table is no longer
 * a partition, and if foreign keys refer to its rows; DROP TABLE would fail for any foreign key
 * to the parent.
 */
CREATE FUNCTION snowflake_drop_partitions(parent regclass, before timestamptz)
RETURNS SETOF text
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	extension_schema CONSTANT regnamespace := (SELECT extnamespace FROM pg_extension WHERE extname = 'snowflake');
	partition text;
BEGIN
	FOR partition IN
		EXECUTE format('SELECT %s.snowflake_detach_partitions($1, $2)', extension_schema) USING parent, before
	LOOP
		EXECUTE format('DROP TABLE %s', partition);
		RETURN NEXT partition;
	END LOOP;
END
$$;

COMMENT ON FUNCTION snowflake_drop_partitions(regclass, timestamptz) IS
'drops the partitions that snowflake_detach_partitions() would detach, and returns their names with their schemas, the oldest first; requires ownership of the table and of the partitions; takes the same locks';
