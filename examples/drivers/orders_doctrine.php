<?php
// Snowflake IDs with Doctrine (ORM 2.14 and 3.3): a custom generator, the schema tool.
//
// Packages: php-cli php-pgsql php-doctrine-orm
// Not in script/test: PHP is large.
//
// With strategy CUSTOM, Doctrine requests the ID from the generator when an object is persisted.
// AUTO, IDENTITY and SEQUENCE are for sequences: Doctrine would create one, and read from it.
//
// Connects as PGHOST and similar variables specify, to a database with the extension.
require "/usr/share/php/Doctrine/ORM/autoload.php";

use Doctrine\DBAL\DriverManager;
use Doctrine\DBAL\Exception\DriverException;
use Doctrine\ORM\Configuration;
use Doctrine\ORM\EntityManager;
use Doctrine\ORM\EntityManagerInterface;
use Doctrine\ORM\Id\AbstractIdGenerator;
use Doctrine\ORM\Mapping as ORM;
use Doctrine\ORM\Mapping\Driver\AttributeDriver;
use Doctrine\ORM\Tools\SchemaTool;

class SnowflakeGenerator extends AbstractIdGenerator
{
    public function generateId(EntityManagerInterface $manager, $entity): string
    {
        return (string) $manager->getConnection()->fetchOne("SELECT snowflake_id()");
    }
}

#[ORM\Entity]
#[ORM\Table(name: "orders")]
class Order
{
    #[ORM\Id]
    #[ORM\Column(type: "bigint", options: ["default" => "snowflake_id()"])]
    #[ORM\GeneratedValue(strategy: "CUSTOM")]
    #[ORM\CustomIdGenerator(class: SnowflakeGenerator::class)]
    public string $id;

    #[ORM\Column]
    public string $customer;
}

#[ORM\Entity]
#[ORM\Table(name: "lines")]
class Line
{
    #[ORM\Id]
    #[ORM\ManyToOne]
    public Order $order;
}

// The trap: a strategy for keys from a sequence.
#[ORM\Entity]
#[ORM\Table(name: "others")]
class Other
{
    #[ORM\Id]
    #[ORM\Column(type: "bigint", options: ["default" => "snowflake_id()"])]
    #[ORM\GeneratedValue(strategy: "IDENTITY")]
    public string $id;

    #[ORM\Column]
    public string $customer;
}

function check(bool $condition, string $what): void
{
    $condition || throw new Exception("not so: $what");
}

function order(string $class, string $customer): object
{
    $order = new $class();
    $order->customer = $customer;
    return $order;
}

$configuration = new Configuration();
$configuration->setMetadataDriverImpl(new AttributeDriver([__FILE__]));
$configuration->setProxyDir(sys_get_temp_dir());
$configuration->setProxyNamespace("Proxies");
$connection = DriverManager::getConnection(
    ["driver" => "pdo_pgsql", "dbname" => getenv("PGDATABASE"), "user" => getenv("PGUSER") ?: get_current_user()], $configuration);
$manager = new EntityManager($connection, $configuration);
$tool = new SchemaTool($manager);
$orders = [$manager->getClassMetadata(Order::class), $manager->getClassMetadata(Line::class)];
$others = [$manager->getClassMetadata(Other::class)];

// The schema tool creates the default in the options, then finds no difference, and replaces a
// different default.
$tool->createSchema($orders);
$default = "SELECT column_default FROM information_schema.columns WHERE column_name = 'id' AND table_name = ?";
check($connection->fetchOne($default, ["orders"]) === "snowflake_id()", "the default of the table");
check($tool->getUpdateSchemaSql($orders) === [], "nothing to update");
$connection->executeStatement("ALTER TABLE orders ALTER id SET DEFAULT snowflake_nextval()");
check($tool->getUpdateSchemaSql($orders) === ["ALTER TABLE orders ALTER id SET DEFAULT snowflake_id()"], "the update");
$tool->updateSchema($orders, true);

// The ID is known before the row is inserted.  DBAL 3 returns a bigint as a string, DBAL 4 as an int.
$order = order(Order::class, "Ada");
$manager->persist($order);
check($order->id > 2 ** 60, "persist() asks for the ID");
$manager->flush();
$manager->clear();
$found = $manager->find(Order::class, $order->id);
echo "Doctrine ORM ", Doctrine\ORM\Version::VERSION, ": order $order->id\n";
check($found->id === $order->id && $found->customer === "Ada", "the order is found by its ID");
$returned = $connection->convertToPHPValue($connection->fetchOne("SELECT id FROM orders"), "bigint");
check(get_debug_type($returned) === (Doctrine\ORM\Version::VERSION < "3" ? "string" : "int"), "the type of a bigint");

// The IDs of many objects increase in the order of persist().
$batch = array_map(fn ($i) => order(Order::class, "customer $i"), range(1, 100));
array_walk($batch, [$manager, "persist"]);
$manager->flush();
$ids = array_column($batch, "id");
$sorted = $ids;
sort($sorted);
check($ids === $sorted, "IDs increase");
check($connection->fetchOne("SELECT customer FROM orders WHERE id = ?", [$ids[99]]) === "customer 100", "the object has the row's key");

// Exact as rows, in a relation and in an aggregate.
$exact = ["9007199254740991", "2116681624581046272", "9223372036854775807"];
foreach ($exact as $id) {
    $connection->insert("orders", ["id" => $id, "customer" => "exact"]); // persist() would replace the ID
    $line = new Line();
    $line->order = $manager->getReference(Order::class, $id);
    $manager->persist($line);
}
$manager->flush();
$manager->clear();
foreach (["SELECT o.id FROM \\Order o WHERE o.customer = 'exact' ORDER BY o.id", "SELECT o.id FROM Line l JOIN l.order o ORDER BY o.id",
    "SELECT MAX(o.id) FROM Line l JOIN l.order o GROUP BY o.id ORDER BY o.id"] as $query)
    check(array_map("strval", $manager->createQuery($query)->getSingleColumnResult()) === $exact, "IDs are exact: $query");

// IDENTITY makes a sequence, whatever the default in the options; DBAL 4 does so by an identity column ...
$create = $tool->getCreateSchemaSql($others)[0];
check(preg_match("/id (BIGSERIAL|BIGINT GENERATED BY DEFAULT AS IDENTITY) NOT NULL/", $create) === 1, $create);

// ... gives one to a table that has the default, in an update ...
$connection->executeStatement("CREATE TABLE others (id bigint PRIMARY KEY DEFAULT snowflake_id(), customer varchar(255) NOT NULL)");
$update = $tool->getUpdateSchemaSql([...$orders, ...$others]);
echo implode("\n", $update), "\n";
check(preg_grep("/nextval|IDENTITY/", $update) !== [], "the update makes a sequence");

// ... and reads its last value.
try {
    $manager->persist(order(Other::class, "Ada"));
    $manager->flush();
    check(false, "IDENTITY fails");
} catch (DriverException $failure) {
    echo $failure->getMessage(), "\n";
}
