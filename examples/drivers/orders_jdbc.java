// Snowflake IDs with JDBC: generated keys, batches, metadata.
//
// Packages: default-jdk-headless libpostgresql-jdbc-java libjunixsocket-java libjunixsocket-jni
// Not in script/test: a JDK is large.
//
// The ID is a long.  Name the column whose value is wanted, as below: with
// Statement.RETURN_GENERATED_KEYS the driver returns all columns, and the first need not be the key.
//
// Connects as PGHOST and similar variables specify, to a database with the extension.
// The jars of these packages are in /usr/share/java.
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;

class OrdersJdbc {
    static Connection connection;

    public static void main(String[] arguments) throws SQLException {
        connection = connect(false);
        System.out.println("JDBC driver " + connection.getMetaData().getDriverVersion());
        execute("CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_id(), item text NOT NULL)");
        execute("CREATE TABLE others (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), item text NOT NULL)");
        countStatements("orders");

        insertOne();
        for (boolean rewrite : new boolean[] {false, true}) {
            connection = connect(rewrite);
            insertBatch(rewrite);
            insertBatchWithoutKeys(rewrite);
        }
        readMetadata();
        findTheTrap();
        readExactly();
    }

    // The ID comes back with the row.
    static void insertOne() throws SQLException {
        PreparedStatement insert = connection.prepareStatement("INSERT INTO orders (item) VALUES (?)", new String[] {"id"});
        insert.setString(1, "a lamp");
        insert.executeUpdate();
        ResultSet keys = insert.getGeneratedKeys();
        keys.next();
        long id = keys.getLong("id");
        System.out.println("order " + id);
        check(id > 1L << 60 && keys.getObject("id") instanceof Long, "the ID is a long");
    }

    // A batch returns its keys in the order of its rows.  reWriteBatchedInserts has no effect on it.
    static void insertBatch(boolean rewrite) throws SQLException {
        PreparedStatement insert = connection.prepareStatement("INSERT INTO orders (item) VALUES (?)", new String[] {"id"});
        long before = statements();
        for (int i = 0; i < 1000; i++) {
            insert.setString(1, "item " + i);
            insert.addBatch();
        }
        insert.executeBatch();
        ResultSet keys = insert.getGeneratedKeys();
        List<Long> ids = new ArrayList<>();
        while (keys.next())
            ids.add(keys.getLong("id"));
        check(ids.size() == 1000 && increases(ids), "1000 keys, which increase");
        for (int i = 0; i < 1000; i++)
            check(query("SELECT item FROM orders WHERE id = " + ids.get(i)).equals("item " + i), "row " + i + " has key " + i);
        check(statements() - before == 1000, "with keys, a batch is not rewritten");
    }

    // A batch that returns no keys can be rewritten into a few statements.  IDs increase in the order of its rows.
    static void insertBatchWithoutKeys(boolean rewrite) throws SQLException {
        PreparedStatement insert = connection.prepareStatement("INSERT INTO orders (item) VALUES (?)");
        long before = statements();
        execute("DELETE FROM orders");
        for (int i = 0; i < 1000; i++) {
            insert.setString(1, "" + i);
            insert.addBatch();
        }
        insert.executeBatch();
        System.out.printf("reWriteBatchedInserts=%s: 1000 rows by %d statements%n", rewrite, statements() - before);
        check(statements() - before == (rewrite ? 10 : 1000), "the batch was rewritten if that is set");
        check(query("SELECT bool_and(item::int = place) FROM (SELECT item, row_number() OVER (ORDER BY id) - 1 AS place FROM orders) o")
            .equals("t"), "IDs are in the order of the rows");
    }

    // The driver treats a default that contains "nextval" as a sequence.
    static void readMetadata() throws SQLException {
        for (String table : new String[] {"orders", "others"}) {
            ResultSet column = connection.getMetaData().getColumns(null, "public", table, "id");
            column.next();
            String type = column.getString("TYPE_NAME") + ", " + column.getString("IS_AUTOINCREMENT");
            System.out.println(column.getString("COLUMN_DEF") + ": " + type);
            check(type.equals(table.equals("orders") ? "int8, NO" : "bigserial, YES"), "the type in the metadata");
        }
    }

    // All columns are returned, and the first one is not the key.
    static void findTheTrap() throws SQLException {
        execute("CREATE TABLE parts (item text NOT NULL, id bigint PRIMARY KEY DEFAULT snowflake_id())");
        PreparedStatement insert = connection.prepareStatement("INSERT INTO parts (item) VALUES ('7')", Statement.RETURN_GENERATED_KEYS);
        insert.executeUpdate();
        ResultSet keys = insert.getGeneratedKeys();
        keys.next();
        check(keys.getMetaData().getColumnCount() == 2, "all columns come back");
        check(keys.getLong(1) == 7, "the first column is not the key");
        check(keys.getLong("id") > 1L << 60, "the key is found by its name");
    }

    // Exact as rows, in a relation and in an aggregate.
    static void readExactly() throws SQLException {
        String[] exact = {"9007199254740991", "2116681624581046272", "9223372036854775807"};
        execute("CREATE TABLE lines (order_id bigint NOT NULL REFERENCES orders)");
        for (String table : new String[] {"orders (item, id) VALUES ('exact', ?)", "lines VALUES (?)"}) {
            PreparedStatement insert = connection.prepareStatement("INSERT INTO " + table);
            for (String id : exact) {
                insert.setLong(1, Long.parseLong(id));
                insert.executeUpdate();
            }
        }
        for (String query : new String[] {"SELECT id FROM orders WHERE item = 'exact' ORDER BY id",
            "SELECT id FROM orders JOIN lines ON order_id = id ORDER BY id", "SELECT max(order_id) FROM lines GROUP BY order_id ORDER BY 1"}) {
            ResultSet rows = connection.createStatement().executeQuery(query);
            for (String id : exact)
                check(rows.next() && Long.toString(rows.getLong(1)).equals(id), "IDs are exact: " + query);
        }
    }

    // A server may not listen on TCP: if PGHOST is a directory, it contains the socket.
    static Connection connect(boolean rewrite) throws SQLException {
        String host = environment("PGHOST", "localhost"), port = environment("PGPORT", "5432");
        Properties properties = new Properties();

        properties.setProperty("user", environment("PGUSER", System.getProperty("user.name")));
        properties.setProperty("password", environment("PGPASSWORD", ""));
        properties.setProperty("reWriteBatchedInserts", "" + rewrite);
        if (host.startsWith("/")) {
            properties.setProperty("socketFactory", "org.newsclub.net.unix.AFUNIXSocketFactory$FactoryArg");
            properties.setProperty("socketFactoryArg", host + "/.s.PGSQL." + port);
            host = "localhost";
        }
        return DriverManager.getConnection("jdbc:postgresql://" + host + ":" + port + "/" + environment("PGDATABASE", "postgres"), properties);
    }

    static String environment(String name, String otherwise) {
        return System.getenv().getOrDefault(name, otherwise);
    }

    // Counts the INSERT statements that arrive at a table.
    static void countStatements(String table) throws SQLException {
        execute("CREATE TABLE statements (number bigint); INSERT INTO statements VALUES (0);"
            + "CREATE FUNCTION count_statement() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN UPDATE statements SET number = number + 1; RETURN NULL; END';"
            + "CREATE TRIGGER counted AFTER INSERT ON " + table + " EXECUTE FUNCTION count_statement()");
    }

    static long statements() throws SQLException {
        return Long.parseLong(query("SELECT number FROM statements"));
    }

    static boolean increases(List<Long> ids) {
        for (int i = 1; i < ids.size(); i++)
            if (ids.get(i) <= ids.get(i - 1))
                return false;
        return true;
    }

    static void execute(String statement) throws SQLException {
        connection.createStatement().execute(statement);
    }

    static String query(String query) throws SQLException {
        ResultSet result = connection.createStatement().executeQuery(query);
        result.next();
        return result.getString(1);
    }

    static void check(boolean condition, String what) {
        if (!condition)
            throw new AssertionError("not so: " + what);
    }
}
