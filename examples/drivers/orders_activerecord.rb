#!/usr/bin/env ruby
# Snowflake IDs with ActiveRecord (6.1 and 7.2): migrations, schema.rb and structure.sql, batches, fixtures.
#
# Packages: ruby-activerecord ruby-pg
# Not in script/test: Ruby and its libraries are large.
#
# The default is snowflake_id().  ActiveRecord treats any default that contains "nextval" as one
# with a sequence, which its fixtures then try to set.
#
# Connects as PGHOST and similar variables specify, to a database with the extension.
require "active_record"
require "active_record/fixtures"
require "stringio"
require "tmpdir"

ActiveRecord::Migration.verbose = false
ActiveRecord::Base.establish_connection(adapter: "postgresql", database: ENV.fetch("PGDATABASE"))

def check(condition, what)
  raise "not so: #{what}" unless condition
end

def connection
  ActiveRecord::Base.connection
end

def default_of(table)
  connection.columns(table).find { |column| column.name == "id" }.default_function
end

class CreateOrders < ActiveRecord::Migration[6.1]
  def change
    enable_extension "snowflake"
    create_table :orders, id: :bigint, default: -> { "snowflake_id()" } do |t|
      t.string :customer
    end
    create_table :lines, id: :bigint, default: -> { "snowflake_id()" } do |t|
      t.references :order, foreign_key: true
      t.string :item
    end
    create_table :others, id: :bigint, default: -> { "snowflake_nextval()" } do |t|
      t.string :customer
    end
  end
end
CreateOrders.migrate(:up)

class Order < ActiveRecord::Base
  has_many :lines
end

class Line < ActiveRecord::Base
  belongs_to :order
end

# The ID comes back with the row, as an Integer.
order = Order.create!(customer: "Ada", lines: [Line.new(item: "a lamp"), Line.new(item: "a desk")])
puts "ActiveRecord #{ActiveRecord.version}: order #{order.id} with lines #{order.lines.map(&:id)}"
check order.id.is_a?(Integer) && order.id > 2**60, "the ID is an Integer"
check order.lines.map(&:id).min > order.id, "later IDs are greater"

# Exact as rows, in a relation and in an aggregate.
EXACT = [2**53 - 1, 2116681624581046272, 2**63 - 1]
EXACT.each { |id| Order.create!(id: id, customer: "exact", lines: [Line.new(id: id)]) }
exact = Order.where(customer: "exact").includes(:lines).order(:id)
check exact.map(&:id) == EXACT && exact.map { |o| o.lines.first.order_id } == EXACT, "IDs are exact"
check Line.where(order_id: EXACT).group(:order_id).maximum(:order_id).values.sort == EXACT, "the greatest of each order is exact"

# The trap: to_json writes numbers, which JavaScript rounds.  A record of this class writes strings.
check Order.find(EXACT.last).to_json.include?('"id":9223372036854775807'), "to_json writes a number"
class TextOrder < Order
  has_many :lines, class_name: "TextLine", foreign_key: :order_id
end
class TextLine < Line
end
module LargeIntegersAsText
  def serializable_hash(options = nil)
    super.transform_values { |value| value.is_a?(Integer) && value.bit_length > 53 ? value.to_s : value }
  end
end
[TextOrder, TextLine].each { |model| model.include LargeIntegersAsText }
json = JSON.parse(TextOrder.find(EXACT.last).to_json(include: :lines))
check [json["id"], json["lines"][0]["id"], json["lines"][0]["order_id"]] == [EXACT.last.to_s] * 3, "to_json writes strings"
Line.where(id: EXACT).delete_all
Order.where(id: EXACT).delete_all

# A batch is one statement, and its keys are returned in the order of its rows.
inserted = Line.insert_all((1..1000).map { |i| { order_id: order.id, item: "item #{i}" } }, returning: [:id, :item]).rows
check inserted.map(&:last) == (1..1000).map { |i| "item #{i}" }, "rows come back in their order"
check inserted.map(&:first).each_cons(2).all? { |a, b| a < b }, "IDs increase with the rows"

# schema.rb has the default and the extension, and creates both.
def schema_rb
  newer = ActiveRecord.version >= Gem::Version.new("7.2")
  schema = StringIO.new
  ActiveRecord::SchemaDumper.dump(newer ? ActiveRecord::Base.connection_pool : connection, schema)
  schema.string
end

tables = %w[orders lines others]
defaults = tables.map { |table| default_of(table) }
schema = schema_rb
check schema.include?('create_table "orders", id: :bigint, default: -> { "snowflake_id()" }, force: :cascade'), "schema.rb"
connection.execute("DROP TABLE lines, orders, others; DROP EXTENSION snowflake")
eval(schema)
check tables.map { |table| default_of(table) } == defaults, "defaults after schema.rb"

# structure.sql, which pg_dump writes, has them as well.
def restore_structure(schemas = "")
  Dir.mktmpdir do |directory|
    structure = File.join(directory, "structure.sql")
    tasks = ActiveRecord::Tasks::PostgreSQLDatabaseTasks.new(ActiveRecord::Base.connection_db_config)
    tasks.structure_dump(structure, nil)
    connection.execute("DROP TABLE #{connection.tables.join(", ")}; DROP EXTENSION snowflake; #{schemas}")
    tasks.structure_load(structure, ["--output=#{File::NULL}"])
  end
  ActiveRecord::Base.establish_connection(adapter: "postgresql", database: ENV.fetch("PGDATABASE"))
end

restore_structure
check tables.map { |table| default_of(table) } == defaults, "defaults after structure.sql"

# Keys of fixtures are computed from their names.  After loading them, ActiveRecord sets the sequence of the
# key, and treats a default that contains "nextval" as one that has a sequence.
def load_fixture(table)
  Dir.mktmpdir do |directory|
    File.write(File.join(directory, "#{table}.yml"), "ada:\n  customer: Ada\n")
    ActiveRecord::FixtureSet.create_fixtures(directory, [table])
  end
end

load_fixture("orders")
check Order.find(ActiveRecord::FixtureSet.identify("ada")).customer == "Ada", "the fixture"
check ActiveRecord::FixtureSet.identify("ada") < 2**30, "the key of a fixture is not a Snowflake ID"
check Order.create!(customer: "Bob").id > 2**60, "the next ID"
begin
  load_fixture("others")
  check false, "fixtures fail for a default of snowflake_nextval()"
rescue ActiveRecord::StatementInvalid => failure
  puts "fixtures, default snowflake_nextval(): #{failure.message.lines.first}"
  check failure.message.include?('relation "public" does not exist'), "setval() of a sequence that does not exist"
end

# With the extension in a schema of its own, structure.sql restores the default.  schema.rb does not: 6.1 does not create the schema,
# and 7.2 creates the extension in "public".
connection.execute("DROP TABLE lines, orders, others; DROP EXTENSION snowflake; CREATE SCHEMA snowflake; CREATE EXTENSION snowflake SCHEMA snowflake")
connection.execute("CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake.snowflake_id(), customer text)")
restore_structure("DROP SCHEMA snowflake")
check default_of("orders") == "snowflake.snowflake_id()", "the default after structure.sql"
schema = schema_rb
check schema.include?('default: -> { "snowflake.snowflake_id()" }'), "the default with its schema"
connection.execute("DROP TABLE orders; DROP EXTENSION snowflake; DROP SCHEMA snowflake")
begin
  eval(schema)
  check false, "schema.rb cannot be loaded"
rescue ActiveRecord::StatementInvalid => failure
  puts "schema.rb: #{failure.message.lines.first}"
  check failure.message.match?(/schema "snowflake" does not exist|function snowflake.snowflake_id\(\) does not exist/), "the schema, or the function in it, is missing"
end

# With that schema in the search_path of the database, schema.rb can be loaded: its default has no schema.
connection.execute("DROP EXTENSION IF EXISTS snowflake; DROP SCHEMA IF EXISTS snowflake; CREATE SCHEMA snowflake; CREATE EXTENSION snowflake SCHEMA snowflake")
connection.execute("ALTER DATABASE #{connection.quote_table_name(connection.current_database)} SET search_path = public, snowflake; SET search_path = public, snowflake")
connection.execute("CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_id(), customer text)")
restore_structure("DROP SCHEMA snowflake")
schema = schema_rb
connection.execute("DROP TABLE orders; DROP EXTENSION snowflake; DROP SCHEMA snowflake")
eval(schema)
check default_of("orders") == "snowflake_id()", "the default after schema.rb"
