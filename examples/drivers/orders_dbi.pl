#!/usr/bin/env perl
# Snowflake IDs with Perl's DBI and DBD::Pg: RETURNING, and the result of last_insert_id().
#
# Packages: libdbd-pg-perl
#
# The ID comes back as a string of digits, and Perl's integers have 64 bits.
#
# Connects as PGHOST and similar variables specify, to a database with the extension.
use strict;
use warnings;
use DBI;

sub check
{
	my ($condition, $what) = @_;
	die "not so: $what" unless $condition;
}

my $db = DBI->connect('dbi:Pg:', undef, undef, { RaiseError => 1, PrintError => 0 });
print "DBD::Pg $DBD::Pg::VERSION\n";
$db->do('CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_id(), item text NOT NULL)');

# The ID comes back with the row.
my ($id) = $db->selectrow_array('INSERT INTO orders (item) VALUES (?) RETURNING id', undef, 'a lamp');
print "order $id\n";
check($id > 2**60, 'the ID is a large integer');

# A batch is one statement, and reads its keys in the order of its rows.
my @items = map { "item $_" } 1 .. 1000;
my $rows = $db->selectall_arrayref('INSERT INTO orders (item) SELECT unnest(?::text[]) RETURNING id, item', undef, \@items);
check("@{[ map { $_->[1] } @$rows ]}" eq "@items", 'rows come back in their order');
check(!(grep { $rows->[$_][0] <= $rows->[ $_ - 1 ][0] } 1 .. $#$rows), 'IDs increase with the rows');

# Exact as rows, in a relation and in an aggregate.
my @exact = ('9007199254740991', '2116681624581046272', '9223372036854775807');
$db->do("INSERT INTO orders SELECT *, 'exact' FROM unnest(?::bigint[])", undef, \@exact);
$db->do("CREATE TABLE lines AS SELECT id AS order_id FROM orders WHERE item = 'exact'");
for my $query ("SELECT id FROM orders WHERE item = 'exact' ORDER BY id", 'SELECT id FROM orders JOIN lines ON order_id = id ORDER BY id',
	'SELECT max(order_id) FROM lines GROUP BY order_id ORDER BY 1')
{
	check("@{ $db->selectcol_arrayref($query) }" eq "@exact", "IDs are exact: $query");
}

# The trap: last_insert_id() looks for a sequence.
eval { $db->last_insert_id(undef, undef, 'orders', undef) };
print "last_insert_id(): $@";
check($@, 'last_insert_id() fails');
$db->disconnect;
