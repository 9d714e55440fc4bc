# CREATE EXTENSION by a superuser, and snowflake_setup() of the edition in SQL, in a schema in which another user has laid traps: functions
# and operators of the names that the scripts use, which would match some call better than the functions and operators
# of pg_catalog do.  No object of the extensions may use one.
use FindBin;
use lib "$FindBin::RealBin/lib";
use SnowflakeTest;

# To lay thousands of traps under valgrind takes longer than all else (script/test-checked).
my $server = snowflake_server('main', { extension => 0 }, 'snowflake.machine_id = 1', 'max_locks_per_transaction = 1024', 'snowflake_test.checked = off');

my @scripts = map { slurp_file($_) } glob("$FindBin::RealBin/../snowflake*--*.sql"), "$FindBin::RealBin/../portable/snowflake.sql";
my %called = map { lc $_ => 1 } map { /\b([a-z_0-9]+)\s*\(/gi } @scripts;
my $names = join(', ', map { "'$_'" } sort keys %called);

# Of each function an overload for each of its arguments and each type of a list; of those
# that take any number of arguments, or any type, one for each number; and operators for all
# pairs of types.
my $traps = <<SQL;
SET client_min_messages = error;
CREATE ROLE attacker;
CREATE SCHEMA evil AUTHORIZATION attacker;
SET ROLE attacker;
SET search_path = pg_catalog;
CREATE FUNCTION evil.sprung() RETURNS boolean LANGUAGE plpgsql AS \$\$ BEGIN RAISE 'a trap'; END \$\$;
CREATE TABLE evil.types AS SELECT t::regtype AS type FROM unnest(ARRAY[
	'boolean', '"char"', 'smallint', 'integer', 'bigint', 'double precision', 'numeric', 'text', 'name', 'varchar', 'bpchar',
	'timestamptz', 'timestamp', 'date', 'interval', 'oid', 'regclass', 'regtype', 'regnamespace', 'text[]', 'name[]', 'smallint[]', 'oid[]', 'int2vector', 'uuid', 'bytea']) t;
CREATE FUNCTION evil.trap(name name, arguments text) RETURNS void LANGUAGE plpgsql AS \$\$
BEGIN
	EXECUTE format('CREATE FUNCTION evil.%I(%s) RETURNS boolean LANGUAGE SQL AS ''SELECT evil.sprung()''', name, arguments);
EXCEPTION WHEN duplicate_function OR invalid_function_definition THEN
	NULL;
END
\$\$;
SELECT count(evil.trap(proname, (SELECT string_agg(CASE WHEN i = position OR argument::regtype IN ('"any"', 'anyelement', 'anycompatible', 'anyarray') THEN types.type ELSE argument::regtype END::text, ', ' ORDER BY i)
	FROM unnest(proargtypes::oid[]) WITH ORDINALITY a (argument, i))))
FROM pg_catalog.pg_proc, evil.types, generate_series(1, pronargs) AS position
WHERE pronamespace = 'pg_catalog'::regnamespace AND proname IN ($names) AND NOT ('internal'::regtype = ANY (proargtypes::oid[])) AND NOT ('cstring'::regtype = ANY (proargtypes::oid[]));
SELECT count(evil.trap(proname, array_to_string(array_fill(type::text, ARRAY[length]), ', ')))
FROM pg_catalog.pg_proc, evil.types, generate_series(0, 5) AS length
WHERE pronamespace = 'pg_catalog'::regnamespace AND proname IN ($names) AND (provariadic <> 0 OR '"any"'::regtype = ANY (proargtypes::oid[])) AND type <> 'text[]'::regtype;
DO \$\$
DECLARE
	pair record;
	symbol text;
BEGIN
	FOR pair IN SELECT l.type AS l, r.type AS r FROM evil.types l, evil.types r LOOP
		PERFORM evil.trap('operand', pair.l || ', ' || pair.r);
		FOREACH symbol IN ARRAY ARRAY['=', '<>', '<', '>', '<=', '>=', '+', '-', '*', '/', '%', '||', '~', '~~', '^', '&', '|', '<<', '>>', '->', '->>'] LOOP
			IF NOT EXISTS (SELECT FROM pg_operator WHERE oprname = symbol AND oprnamespace = 'pg_catalog'::regnamespace AND oprleft = pair.l AND oprright = pair.r) THEN
				EXECUTE format('CREATE OPERATOR evil.%s (LEFTARG = %s, RIGHTARG = %s, FUNCTION = evil.operand)', symbol, pair.l, pair.r);
			END IF;
		END LOOP;
	END LOOP;
END
\$\$;
CREATE TABLE evil.traps AS
	SELECT 'pg_proc'::regclass AS classid, oid FROM pg_proc WHERE pronamespace = 'evil'::regnamespace
	UNION ALL SELECT 'pg_operator'::regclass, oid FROM pg_operator WHERE oprnamespace = 'evil'::regnamespace;
SQL
$server->safe_psql('postgres', $traps);
$server->adjust_conf('postgresql.conf', 'snowflake_test.checked', undef);
$server->restart;
cmp_ok($server->safe_psql('postgres', "SELECT count(*) FROM evil.traps WHERE classid = 'pg_proc'::regclass"), '>', 1000, 'functions are laid as traps');
cmp_ok($server->safe_psql('postgres', "SELECT count(*) FROM evil.traps WHERE classid = 'pg_operator'::regclass"), '>', 5000, 'and operators');

# A trap works: a call that uses it is found.
my $found = <<'SQL';
SELECT pg_describe_object(d.classid, d.objid, d.objsubid) || ' uses ' || pg_describe_object(d.refclassid, d.refobjid, d.refobjsubid)
FROM pg_depend d JOIN evil.traps t ON t.classid = d.refclassid AND t.oid = d.refobjid
WHERE (d.classid, d.objid) NOT IN (SELECT classid, oid FROM evil.traps)
SQL
$server->safe_psql('postgres', "SET search_path = evil; CREATE FUNCTION careless(i integer) RETURNS boolean RETURN i * interval '1 day'");
like($server->safe_psql('postgres', $found), qr/^function evil\.careless\(integer\) uses operator evil\.\*\(integer,interval\)$/, 'a careless function uses one');
$server->safe_psql('postgres', 'DROP FUNCTION evil.careless');

# The edition in SQL, in a copy of the database.
$server->safe_psql('postgres', 'CREATE DATABASE edition TEMPLATE postgres');
{
	local $ENV{PGOPTIONS} = '-c search_path=evil,pg_catalog';

	ok(edition($server, 'edition', machine_id => 7, floor => '2020-01-01'), 'snowflake_setup()') or diag(slurp_file("$scratch/refusal"));
	ok(edition($server, 'edition', machine_id => 7), 'snowflake_setup() again');
}
is($server->safe_psql('edition', $found), '', 'no object of the edition uses a trap');
is($server->safe_psql('edition', <<'SQL'), 'snowflake_checked', 'all of its functions but one, which qualifies all names, have a safe search_path');
SELECT proname FROM pg_proc WHERE pronamespace = 'evil'::regnamespace AND starts_with(proname, 'snowflake') AND prosqlbody IS NULL AND NOT (coalesce(proconfig, '{}') @> ARRAY['search_path=pg_catalog, pg_temp'])
SQL
is($server->safe_psql('edition', <<'SQL'), "7\n1\n0\n000000000007b\n235\n4194304\nt", 'the functions work among traps');
SET search_path = evil, pg_catalog;
SELECT evil.snowflake_machine_id(evil.snowflake_id());
SELECT pg_catalog.count(*) FROM evil.snowflake_nextvals(1);
SELECT pg_catalog.count(*) FROM evil.snowflake_nextvals(0);
SELECT evil.snowflake_to_base32(235::bigint);
SELECT evil.snowflake_from_base32('000000000007b'::text);
SELECT evil.snowflake_boundary(evil.snowflake_timestamp(4194304::bigint), 'twitter'::text);
SELECT evil.snowflake_horizon() AS horizon \gset
SELECT :horizon OPERATOR(pg_catalog.>) evil.snowflake_encode('2026-01-01'::timestamptz, 3, 4, 'twitter'::text);
SQL
for my $call ("evil.snowflake_timestamp(-1::bigint)", "evil.snowflake_timestamp(1::bigint, 'none'::text)", "evil.snowflake_encode('2009-01-01'::timestamptz, 1, 1)", "evil.snowflake_encode('2026-01-01'::timestamptz, -1, 1)")
{
	fails_with($server, "\\connect edition\nSET search_path = evil, pg_catalog; SELECT $call", $call =~ /2009/ ? '22008' : '22023');
}

my ($status, undef, $stderr) = $server->psql('postgres', 'CREATE EXTENSION snowflake SCHEMA evil');
is($stderr, '', 'CREATE EXTENSION snowflake');
($status, undef, $stderr) = $server->psql('postgres', 'SET search_path = evil; CREATE EXTENSION snowflake_registry');
is($stderr, '', 'CREATE EXTENSION snowflake_registry');
is($server->safe_psql('postgres', $found), '', 'no object of the extensions uses a trap');

# Functions whose names are resolved only when they are called have a search_path of
# their own, except for the procedures that run a command of the caller and that commit.
is($server->safe_psql('postgres', <<'SQL'), '', 'all other functions have a safe search_path');
SELECT p.oid::regprocedure
FROM pg_depend d JOIN pg_proc p ON p.oid = d.objid JOIN pg_language l ON l.oid = p.prolang
WHERE d.classid = 'pg_proc'::regclass AND d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e'
  AND d.refobjid IN (SELECT oid FROM pg_extension WHERE extname LIKE 'snowflake%')
  AND l.lanname NOT IN ('c', 'internal') AND p.prosqlbody IS NULL
  AND 'search_path=pg_catalog, pg_temp' <> ALL (coalesce(p.proconfig, '{}')) AND p.proname NOT IN ('snowflake_process', 'commit')
SQL

# The functions of the extension that they call by EXECUTE have overloads, too.
my $executed = join(', ', map { "'$_'" } map { /(?:%(?:1\$)?s|')\.((?:snowflake|sno)_\w+)\(/g } @scripts);
cmp_ok($server->safe_psql('postgres', <<SQL), '>', 500, 'functions that are called by EXECUTE have overloads as traps');
SET ROLE attacker;
SET search_path = pg_catalog;
SELECT count(evil.trap(proname, (SELECT string_agg(CASE WHEN i = position THEN types.type ELSE argument::regtype END::text, ', ' ORDER BY i)
	FROM unnest(proargtypes::oid[]) WITH ORDINALITY a (argument, i))))
FROM pg_proc, evil.types, generate_series(1, pronargs) AS position
WHERE pronamespace = 'evil'::regnamespace AND prokind = 'f' AND proname IN ($executed);
SQL

# So they work there, for a superuser with the attacker's search_path.
is($server->safe_psql('postgres', <<'SQL'), "4\n2\n2\n1\nt\n7|86400000000", 'functions work among traps');
SET search_path = evil, public;
CREATE TABLE public.events (id bigint) PARTITION BY RANGE (id);
SELECT pg_catalog.count(*) FROM evil.snowflake_create_partitions('public.events', '2026-01-01', '2026-05-01', '1 month');
SELECT pg_catalog.count(*) FROM evil.snowflake_drop_partitions('public.events', '2026-03-15', '-infinity');
CREATE TABLE public.old (id serial PRIMARY KEY);
INSERT INTO public.old SELECT FROM pg_catalog.generate_series(1, 10);
ALTER TABLE public.old ALTER id TYPE bigint;
SELECT pg_catalog.count(*) FROM evil.snowflake_adopt('public.old', 'id');
SELECT pg_catalog.count(*) FROM evil.snowflake_enable_feed('public.old');
CREATE TABLE public.consumers (consumer text PRIMARY KEY, next_id bigint);
CALL evil.snowflake_process('public.consumers', 'consumer', 'INSERT INTO public.old VALUES ($2)', pg_catalog.now(), NULL, true) \gset
INSERT INTO public.old VALUES (evil.snowflake_nextval());
CALL evil.snowflake_process('public.consumers', 'consumer', 'DELETE FROM public.old', at_most => '1 day') \gset
SELECT next_id OPERATOR(pg_catalog.=) :next_id FROM public.consumers;
CALL snowflake_registry.commit(ROW(7, 'epoch', '1970-01-02Z', 1, '0', 'none', 'epoch')::snowflake_registry.answer, 0, 0, 0, 0, 0, '', 0) \gset
SELECT :machine_id, :lease_until;
SQL

done_testing();
