// Runs portable/snowflake.sql and snowflake_setup() with JDBC, in a transaction.  For edition.pl.
//
//   java Edition.java FILE      prints the version of the driver
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.Statement;
import java.util.Properties;

class Edition {
    public static void main(String[] arguments) throws Exception {
        Properties properties = new Properties();

        properties.setProperty("user", System.getenv("PGUSER"));
        properties.setProperty("socketFactory", "org.newsclub.net.unix.AFUNIXSocketFactory$FactoryArg");
        properties.setProperty("socketFactoryArg", System.getenv("PGHOST") + "/.s.PGSQL." + System.getenv("PGPORT"));
        try (Connection connection = DriverManager.getConnection("jdbc:postgresql://localhost/" + System.getenv("PGDATABASE"), properties)) {
            connection.setAutoCommit(false);
            try (Statement statement = connection.createStatement()) {
                statement.execute(Files.readString(Path.of(arguments[0])));
                statement.execute("SELECT snowflake_setup(machine_id => 7)");
                statement.execute("CREATE TABLE IF NOT EXISTS items (id bigint PRIMARY KEY DEFAULT snowflake_id(), n integer)");
            }
            connection.prepareStatement(Files.readString(Path.of(arguments[0]))).execute();
            connection.commit();
            System.out.println("JDBC driver " + connection.getMetaData().getDriverVersion());
        }
    }
}
