require "active_record"
require "active_record/fixtures"
require "stringio"
require "tmpdir"
puts ActiveRecord::VERSION::STRING
ActiveRecord::Base.establish_connection(adapter: "postgresql", database: ENV["PGDATABASE"])
ActiveRecord::Migration.verbose = false
ActiveRecord::Schema.define do
  enable_extension "snowflake"
  create_table :orders, id: :bigint, default: -> { "snowflake_id()" } do |t|
    t.string :customer
  end
  create_table :others, id: :bigint, default: -> { "snowflake_nextval()" } do |t|
    t.string :customer
  end
  create_table :lines, id: :bigint, default: -> { "snowflake_id()" } do |t|
    t.references :order, foreign_key: true
    t.string :item
  end
end
class Order < ActiveRecord::Base; end
class Other < ActiveRecord::Base; end
o = Order.create!(customer: "x"); p o.id, o.id.class
p Other.create!(customer: "x").id
p Order.insert_all([{customer: "a"}, {customer: "b"}], returning: :id).rows
p Other.insert_all([{customer: "a"}, {customer: "b"}], returning: :id).rows
s = StringIO.new; ActiveRecord::SchemaDumper.dump(ActiveRecord::Base.connection, s); puts s.string
c = ActiveRecord::Base.connection
p c.pk_and_sequence_for("orders"), c.pk_and_sequence_for("others")
p Other.sequence_name, Order.sequence_name
["orders","others"].each do |t|
 begin
  Dir.mktmpdir do |d|
   File.write("#{d}/#{t}.yml", "ada:\n  customer: Ada\nbob:\n  customer: Bob\n")
   ActiveRecord::FixtureSet.create_fixtures(d, [t])
  end
  p c.select_rows("select * from #{t}")
 rescue => e
  p e.class, e.message
 end
end
