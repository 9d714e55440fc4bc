// Snowflake IDs with Hibernate (3.6, Debian's): IDENTITY, a custom generator, the schema tools.
//
// Packages: default-jdk-headless libhibernate3-java libjavassist-java libpostgresql-jdbc-java libjunixsocket-java libjunixsocket-jni
// Not in script/test: a JDK is large.
//
// With IDENTITY, Hibernate leaves the key out of INSERT and reads it from getGeneratedKeys(), and so
// sends each INSERT by itself.  With the generator below it requests the ID first, and batches the
// INSERTs.  Both work with a table that was created by SQL.  For IDENTITY the schema tools create a
// table with a sequence.
//
// Connects as PGHOST and similar variables specify, to a database with the extension.
// The jars of these packages are in /usr/share/java.
import java.io.Serializable;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import javax.persistence.Column;
import javax.persistence.Entity;
import javax.persistence.GeneratedValue;
import javax.persistence.GenerationType;
import javax.persistence.Id;
import javax.persistence.ManyToOne;
import javax.persistence.Table;
import org.hibernate.ReplicationMode;
import org.hibernate.Session;
import org.hibernate.SessionFactory;
import org.hibernate.Transaction;
import org.hibernate.annotations.GenericGenerator;
import org.hibernate.cfg.Configuration;
import org.hibernate.engine.SessionImplementor;
import org.hibernate.id.IdentifierGenerator;
import org.hibernate.tool.hbm2ddl.SchemaExport;
import org.hibernate.tool.hbm2ddl.SchemaUpdate;
import org.hibernate.tool.hbm2ddl.SchemaValidator;

class OrdersHibernate {
    static SessionFactory sessions;

    public static void main(String[] arguments) throws Exception {
        Thread.currentThread().setContextClassLoader(OrdersHibernate.class.getClassLoader());
        System.out.println("Hibernate " + Session.class.getPackage().getImplementationVersion());
        Configuration configuration = configuration();
        sessions = configuration.buildSessionFactory();

        makeTheTables(configuration);
        insertByIdentity();
        insertByGenerator();
        readExactly();
    }

    // The trap: the schema that Hibernate creates has a sequence for IDENTITY, whatever
    // columnDefinition says.  The schema update leaves the defaults of existing tables as they are.
    static void makeTheTables(Configuration configuration) {
        new SchemaExport(configuration).create(false, true);
        check(defaultOf("orders").equals("nextval('orders_id_seq'::regclass)"), "IDENTITY makes a sequence");
        check(defaultOf("lines").equals("snowflake_id()"), "columnDefinition makes the default");

        for (String function : new String[] {"snowflake_nextval()", "snowflake_id()"}) {
            execute("DROP TABLE orders, lines");
            execute("CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT " + function + ", customer text)");
            execute("CREATE TABLE lines (id bigint PRIMARY KEY DEFAULT " + function + ", item text)");
            new SchemaUpdate(configuration).execute(false, true);
            new SchemaValidator(configuration).validate();
            check(defaultOf("orders").equals(function) && defaultOf("lines").equals(function), "an update leaves defaults");
        }
        countStatements("orders");
        countStatements("lines");
    }

    static void insertByIdentity() {
        List<Object> orders = new ArrayList<>();
        for (int i = 0; i < 100; i++) {
            Order order = new Order();
            order.customer = "customer " + i;
            orders.add(order);
        }
        insert(orders);
        System.out.println("order " + ((Order) orders.get(0)).id);
        long before = 1L << 60;
        for (Object order : orders) {
            check(((Order) order).id > before, "IDs increase");
            before = ((Order) order).id;
        }
        check(query("SELECT number FROM statements WHERE of = 'orders'").equals("100"), "each by a statement");
        check(query("SELECT customer FROM orders WHERE id = " + before).equals("customer 99"), "the object has the row's key");
    }

    static void insertByGenerator() {
        List<Object> lines = new ArrayList<>();
        for (int i = 0; i < 100; i++) {
            Line line = new Line();
            line.item = "item " + i;
            lines.add(line);
        }
        insert(lines);
        long before = 1L << 60;
        for (Object line : lines) {
            check(((Line) line).id > before, "IDs increase");
            before = ((Line) line).id;
        }
        String statements = query("SELECT number FROM statements WHERE of = 'lines'");
        System.out.println("100 lines by " + statements + " statements");
        check(Integer.parseInt(statements) < 10, "a batch of few statements");
        check(query("SELECT item FROM lines WHERE id = " + before).equals("item 99"), "the object has the row's key");
    }

    // Exact as rows, in a relation and in an aggregate.
    static void readExactly() {
        long[] exact = {(1L << 53) - 1, 2116681624581046272L, Long.MAX_VALUE};
        Session session = sessions.openSession();
        Transaction transaction = session.beginTransaction();
        for (long id : exact) {
            session.createSQLQuery("INSERT INTO orders (id, customer) VALUES (:id, 'exact')").setLong("id", id).executeUpdate();
            Line line = new Line();
            line.id = id;
            line.order = (Order) session.load(Order.class, id);
            session.replicate(line, ReplicationMode.EXCEPTION); // save() would replace the ID
        }
        transaction.commit();
        session.clear();
        for (String query : new String[] {"SELECT id FROM Order WHERE customer = 'exact' ORDER BY id",
            "SELECT o.id FROM Line l JOIN l.order o ORDER BY o.id", "SELECT max(o.id) FROM Line l JOIN l.order o GROUP BY o.id ORDER BY o.id"})
            check(session.createQuery(query).list().toString().equals(Arrays.toString(exact)), "IDs are exact: " + query);
        session.close();
    }

    static void insert(List<Object> objects) {
        Session session = sessions.openSession();
        Transaction transaction = session.beginTransaction();
        for (Object object : objects)
            session.save(object);
        transaction.commit();
        session.close();
    }

    // A server may not listen on TCP: if PGHOST is a directory, it contains the socket.
    static Configuration configuration() {
        String host = environment("PGHOST", "localhost"), port = environment("PGPORT", "5432");
        Configuration configuration = new Configuration()
            .addAnnotatedClass(Order.class).addAnnotatedClass(Line.class)
            .setProperty("hibernate.dialect", "org.hibernate.dialect.PostgreSQLDialect")
            .setProperty("hibernate.jdbc.batch_size", "50")
            .setProperty("hibernate.connection.reWriteBatchedInserts", "true")
            .setProperty("hibernate.connection.driver_class", "org.postgresql.Driver")
            .setProperty("hibernate.connection.username", environment("PGUSER", System.getProperty("user.name")))
            .setProperty("hibernate.connection.password", environment("PGPASSWORD", ""));

        if (host.startsWith("/")) {
            configuration.setProperty("hibernate.connection.socketFactory", "org.newsclub.net.unix.AFUNIXSocketFactory$FactoryArg")
                .setProperty("hibernate.connection.socketFactoryArg", host + "/.s.PGSQL." + port);
            host = "localhost";
        }
        return configuration.setProperty("hibernate.connection.url",
            "jdbc:postgresql://" + host + ":" + port + "/" + environment("PGDATABASE", "postgres"));
    }

    static String environment(String name, String otherwise) {
        return System.getenv().getOrDefault(name, otherwise);
    }

    // Counts the INSERT statements that arrive at a table.
    static void countStatements(String table) {
        execute("CREATE TABLE IF NOT EXISTS statements (of text, number bigint)");
        execute("INSERT INTO statements VALUES ('" + table + "', 0)");
        execute("CREATE OR REPLACE FUNCTION count_statement() RETURNS trigger LANGUAGE plpgsql AS"
            + " 'BEGIN UPDATE statements SET number = number + 1 WHERE of = TG_TABLE_NAME; RETURN NULL; END'");
        execute("CREATE TRIGGER counted AFTER INSERT ON " + table + " EXECUTE FUNCTION count_statement()");
    }

    static String defaultOf(String table) {
        return query("SELECT column_default FROM information_schema.columns WHERE column_name = 'id' AND table_name = '" + table + "'");
    }

    static void execute(String statement) {
        Session session = sessions.openSession();
        Transaction transaction = session.beginTransaction();
        session.doWork((Connection connection) -> connection.createStatement().execute(statement));
        transaction.commit();
        session.close();
    }

    static String query(String query) {
        Session session = sessions.openSession();
        String[] value = new String[1];
        session.doWork((Connection connection) -> {
            ResultSet result = connection.createStatement().executeQuery(query);
            result.next();
            value[0] = result.getString(1);
        });
        session.close();
        return value[0];
    }

    static void check(boolean condition, String what) {
        if (!condition)
            throw new AssertionError("not so: " + what);
    }
}

@Entity
@Table(name = "orders")
public class Order {
    @Id
    @GeneratedValue(strategy = GenerationType.IDENTITY)
    @Column(columnDefinition = "bigint DEFAULT snowflake_id()") // IDENTITY ignores it
    public Long id;

    public String customer;
}

@Entity
@Table(name = "lines")
public class Line {
    @Id
    @GeneratedValue(generator = "snowflake")
    @GenericGenerator(name = "snowflake", strategy = "SnowflakeGenerator")
    @Column(columnDefinition = "bigint DEFAULT snowflake_id()")
    public Long id;

    public String item;

    @ManyToOne
    public Order order;
}

// Selects each ID in the transaction that inserts it: change feeds need that.
public class SnowflakeGenerator implements IdentifierGenerator {
    public Serializable generate(SessionImplementor session, Object object) {
        try (ResultSet result = session.connection().createStatement().executeQuery("SELECT snowflake_id()")) {
            result.next();
            return result.getLong(1);
        } catch (SQLException failure) {
            throw new IllegalStateException(failure);
        }
    }
}
