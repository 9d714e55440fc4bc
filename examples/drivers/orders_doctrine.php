<?php
// Snowflake IDs with Doctrine (ORM 2.14, DBAL 3.6, Debian's): a generator of one's own, the schema tool.
//
// Packages: php-cli php-pgsql php-doctrine-orm
// Not in script/test: PHP is large.
//
// With strategy CUSTOM, Doctrine asks the generator for the ID when an object is persisted.  AUTO,
// IDENTITY and SEQUENCE are for sequences: Doctrine would make one, and read from it.
//
// Connects as PGHOST and so on say, to a database where the extension is created.
require "/usr/share/php/Doctrine/ORM/autoload.php";

use Doctrine\DBAL\DriverManager;
use Doctrine\DBAL\Exception\TableNotFoundException;
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

// The trap: a strategy that takes the key to come from a sequence.
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
$orders = [$manager->getClassMetadata(Order::class)];
$others = [$manager->getClassMetadata(Other::class)];

// The schema tool makes the default of the options, finds no difference to the table, and mends another default.
$tool->createSchema($orders);
$default = "SELECT column_default FROM information_schema.columns WHERE column_name = 'id' AND table_name = ?";
check($connection->fetchOne($default, ["orders"]) === "snowflake_id()", "the default of the table");
check($tool->getUpdateSchemaSql($orders) === [], "nothing to update");
$connection->executeStatement("ALTER TABLE orders ALTER id SET DEFAULT snowflake_nextval()");
check($tool->getUpdateSchemaSql($orders) === ["ALTER TABLE orders ALTER id SET DEFAULT snowflake_id()"], "the update");
$tool->updateSchema($orders, true);

// The ID is known before the row is inserted.  DBAL 3 has a bigint as a string.
$order = order(Order::class, "Ada");
$manager->persist($order);
check($order->id > 2 ** 60, "persist() asks for the ID");
$manager->flush();
$manager->clear();
$found = $manager->find(Order::class, $order->id);
echo "Doctrine ORM ", Doctrine\ORM\Version::VERSION, ": order $order->id\n";
check($found->id === $order->id && $found->customer === "Ada", "the order is found by its ID");

// Of many objects, each asks for its ID, in the order of persist().
$batch = array_map(fn ($i) => order(Order::class, "customer $i"), range(1, 100));
array_walk($batch, [$manager, "persist"]);
$manager->flush();
$ids = array_column($batch, "id");
$sorted = $ids;
sort($sorted);
check($ids === $sorted, "IDs increase");
check($connection->fetchOne("SELECT customer FROM orders WHERE id = ?", [$ids[99]]) === "customer 100", "the object has the row's key");

// IDENTITY makes a sequence, whatever the default in the options ...
check(str_contains($tool->getCreateSchemaSql($others)[0], "id BIGSERIAL NOT NULL"), "IDENTITY makes a sequence");

// ... gives a table that has the default one, in an update ...
$connection->executeStatement("CREATE TABLE others (id bigint PRIMARY KEY DEFAULT snowflake_id(), customer varchar(255) NOT NULL)");
$update = $tool->getUpdateSchemaSql([...$orders, ...$others]);
echo implode("\n", $update), "\n";
check(in_array("ALTER TABLE others ALTER id SET DEFAULT nextval('others_id_seq')", $update), "the update makes a sequence");

// ... and asks for its last value.
try {
    $manager->persist(order(Other::class, "Ada"));
    $manager->flush();
    check(false, "IDENTITY fails");
} catch (TableNotFoundException $failure) {
    check(str_contains($failure->getMessage(), 'relation "others_id_seq" does not exist'), $failure->getMessage());
}
