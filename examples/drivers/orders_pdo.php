<?php
// Snowflake IDs with PDO: RETURNING, and the result of lastInsertId().
//
// Packages: php-cli php-pgsql
// Not in script/test: PHP is large.
//
// The ID comes back as an int, which can hold it in 64-bit PHP.
//
// Connects as PGHOST and similar variables specify, to a database with the extension.

function check(bool $condition, string $what): void
{
    $condition || throw new Exception("not so: $what");
}

$connection = new PDO("pgsql:dbname=" . getenv("PGDATABASE"));
$connection->exec("CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_id(), item text NOT NULL)");

// The ID comes back with the row.
$insert = $connection->prepare("INSERT INTO orders (item) VALUES (?) RETURNING id");
$insert->execute(["a lamp"]);
$id = $insert->fetchColumn();
echo "PHP ", PHP_VERSION, ": order $id\n";
check(is_int($id) && $id > 2 ** 60, "the ID is an int");

// A batch is one statement; its keys are returned in the order of its rows, and increase.
$items = array_map(fn ($i) => "item $i", range(1, 1000));
$insert = $connection->prepare(
    "INSERT INTO orders (item) VALUES " . implode(", ", array_fill(0, count($items), "(?)")) . " RETURNING id, item");
$insert->execute($items);
$rows = $insert->fetchAll(PDO::FETCH_KEY_PAIR);
$sorted = array_keys($rows);
sort($sorted);
check(array_values($rows) === $items, "rows come back in their order");
check(array_keys($rows) === $sorted, "IDs increase with the rows");

// Exact as rows, in a relation and in an aggregate.
$exact = [2 ** 53 - 1, 2116681624581046272, PHP_INT_MAX];
$insert = $connection->prepare("INSERT INTO orders (id, item) VALUES (?, 'exact')");
foreach ($exact as $id)
    $insert->execute([$id]);
$connection->exec("CREATE TABLE lines AS SELECT id AS order_id FROM orders WHERE item = 'exact'");
foreach (["SELECT id FROM orders WHERE item = 'exact' ORDER BY id", "SELECT id FROM orders JOIN lines ON order_id = id ORDER BY id",
    "SELECT max(order_id) FROM lines GROUP BY order_id ORDER BY 1"] as $query)
    check($connection->query($query)->fetchAll(PDO::FETCH_COLUMN) === $exact, "IDs are exact: $query");
// JSON that the server builds is exact as well: json_decode() returns an int.
check(json_decode($connection->query("SELECT json_agg(order_id ORDER BY order_id) FROM lines")->fetchColumn()) === $exact, "JSON is exact");

// lastInsertId() reads the last value of a sequence.  The table has none, so this is an error ...
try {
    $connection->lastInsertId();
    check(false, "lastInsertId() fails");
} catch (PDOException $failure) {
    echo "lastInsertId(): ", $failure->getMessage(), "\n";
    check($failure->getCode() === "55000", "there is no last value");
}

// ... or, if the session has used any other sequence, the key of another table: in a trigger, for example.
$connection->exec("CREATE TABLE log (id bigserial, item text);"
    . "CREATE FUNCTION log_item() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN INSERT INTO log (item) VALUES (NEW.item); RETURN NULL; END';"
    . "CREATE TRIGGER log AFTER INSERT ON orders FOR EACH ROW EXECUTE FUNCTION log_item()");
$connection->exec("INSERT INTO orders (item) VALUES ('a desk')");
check($connection->lastInsertId() === "1", "lastInsertId() is the key of the log");
