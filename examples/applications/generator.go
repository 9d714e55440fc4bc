// Snowflake IDs that a Go program generates itself, with a machine ID from a registry; version 1.0.
//
// Packages: golang-go golang-github-lib-pq-dev
//
// docs/application-ids.md describes the protocol. Generators are safe in goroutines. As a program, this
// file reads commands and prints IDs, as conformance.pl specifies.
package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"log"
	mathrand "math/rand"
	"net"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/lib/pq"
)

// script/layouts writes these definitions. A layout without machine IDs is of no use here.
var presets = map[string]string{
	"twitter":    "epoch=2010-11-04T01:42:54.657Z tick=1ms timestamp=41 machine=10 sequence=12",
	"discord":    "epoch=2015-01-01T00:00:00Z tick=1ms timestamp=41 machine=10 sequence=12",
	"instagram":  "epoch=2011-08-24T21:07:01.721Z tick=1ms timestamp=40 machine=13 sequence=10",
	"sonyflake":  "epoch=2014-09-01T00:00:00Z tick=10ms timestamp=39 sequence=8 machine=16",
	"pgedge":     "epoch=2023-01-01T00:00:00Z tick=1ms timestamp=41 machine=10 sequence=12",
	"javascript": "epoch=2020-01-01T00:00:00Z tick=1ms timestamp=41 machine=5 sequence=7",
}

const (
	epochPlus = "timestamptz '1970-01-01 00:00:00Z' + interval '1 microsecond' * "
	// A registry that is not the expected one does nothing, and returns its identity as lease_number.
	commit = "CALL snowflake_registry.commit(CASE WHEN snowflake_registry.identity() = $1::bigint THEN "
	answer = " ELSE ROW(NULL, NULL, NULL, snowflake_registry.identity(), NULL, NULL, NULL)::snowflake_registry.answer END," +
		" NULL, NULL, NULL, NULL, NULL, NULL, NULL)"
	length  = "$6::integer * interval '1 second', " + epochPlus + "$7::bigint, $8, $9::bigint)" + answer
	claim   = commit + "snowflake_registry.claim($2::uuid, $3, $4::integer, $5::integer, " + length
	renew   = commit + "snowflake_registry.renew($2::uuid, $3::integer, " + epochPlus + "$4::bigint, " + epochPlus + "$5::bigint, " + length
	release = commit + "ROW(NULL, NULL, NULL, NULL, NULL, snowflake_registry.release($2::uuid, " + epochPlus +
		"$3::bigint, $4::bigint)::text, NULL)::snowflake_registry.answer" + answer
)

// The states of a generator.
const (
	claiming    = "before the first answer of the registry"
	held        = "after the end of the lease"
	refused     = "without a lease of a machine ID"
	unreachable = "while the registry is unreachable"
	released    = "after the release of the machine ID"
)

// Error says that no ID was issued. Code is the SQLSTATE of the same error of snowflake_nextval().
type Error struct{ Code, Reason, Detail string }

func (e *Error) Error() string {
	return strings.TrimSuffix("could not generate a Snowflake ID "+e.Reason+": "+e.Detail, ": ")
}

type lease struct {
	machineID   int64
	from, until int64
	ends        int64 // by the monotonic clock
}

// Generator issues IDs. Set the exported fields, and call Start. Times are in microseconds since 1970.
type Generator struct {
	Registry string        // connection string; several hosts of a URL are tried in turn
	Layout   string        // preset, or definition as the view snowflake_layouts shows it
	Lease    time.Duration // its length, in whole seconds
	MaxWait  time.Duration // longest wait of a call
	Holder   string
	Clock    func() (wall, monotonic int64) // SystemClock if nil

	addresses         []string
	layout            string
	epoch, tickLength int64
	bits, shift       map[string]int

	mutex          sync.Mutex
	token          string
	identity       sql.NullInt64
	tick, sequence int64 // of the next ID: they only move forward
	lease          *lease
	known          int64 // greatest lease number
	state, reason  string
	asked          int64
	delay          time.Duration
	draw           float64
	closing, done  chan struct{}
	close          sync.Once
}

var started = time.Now()

// SystemClock is the wall clock, and one that is never set.
func SystemClock() (wall, monotonic int64) {
	return time.Now().UnixMicro(), time.Since(started).Microseconds()
}

func (g *Generator) wall() int64 {
	wall, _ := g.Clock()
	return wall
}

func (g *Generator) monotonic() int64 {
	_, monotonic := g.Clock()
	return monotonic
}

// Start begins to claim a lease.
func (g *Generator) Start() error {
	if g.Clock == nil {
		g.Clock = SystemClock
	}
	g.layout = g.Layout
	if definition := presets[g.Layout]; definition != "" {
		g.layout = definition
	}
	parts := regexp.MustCompile(`^epoch=(\S+Z) tick=(\d+(?:us|ms|s)) (timestamp=\d+(?: (?:machine|sequence)=\d+)+)$`).FindStringSubmatch(g.layout)
	if parts == nil || !strings.Contains(parts[3], "machine") {
		return fmt.Errorf("layout must be a preset or a definition with machine IDs, not %s", g.Layout)
	}
	epoch, err := time.Parse(time.RFC3339Nano, parts[1])
	if err != nil {
		return err
	}
	tick, err := time.ParseDuration(parts[2])
	if err != nil {
		return err
	}
	g.epoch, g.tickLength = epoch.UnixMicro(), tick.Microseconds()
	g.bits, g.shift = map[string]int{}, map[string]int{}
	fields, shift := strings.Fields(parts[3]), 0
	for i := len(fields) - 1; i >= 0; i-- {
		name, value, _ := strings.Cut(fields[i], "=")
		g.bits[name], _ = strconv.Atoi(value)
		g.shift[name] = shift
		shift += g.bits[name]
	}
	if g.addresses, err = addressesOf(g.Registry); err != nil {
		return err
	}
	token := make([]byte, 16)
	if _, err := rand.Read(token); err != nil {
		return err
	}
	g.token = fmt.Sprintf("%x", token)
	g.state, g.closing, g.done = claiming, make(chan struct{}), make(chan struct{})
	go g.work()
	return nil
}

// The connection string of each host.
func addressesOf(registry string) ([]string, error) {
	parts := regexp.MustCompile(`^(postgres(?:ql)?://(?:[^@/?]*@)?)([^/?]*)(.*)$`).FindStringSubmatch(registry)
	if regexp.MustCompile(`\b(host|port) *= *[^& ]*(,|%2[cC])`).MatchString(registry) {
		return nil, errors.New("several hosts require a URL, such as postgresql://a:5432,b:5432/database")
	}
	if parts == nil {
		return []string{registry + " binary_parameters=yes"}, nil
	}
	var addresses []string
	for _, host := range strings.Split(parts[2], ",") {
		address, err := url.Parse(parts[1] + host + parts[3])
		if err != nil {
			return nil, err
		}
		query := address.Query()
		query.Del("target_session_attrs") // a standby refuses the call
		query.Set("binary_parameters", "yes")
		address.RawQuery = query.Encode()
		addresses = append(addresses, address.String())
	}
	return addresses, nil
}

// Nextval returns an ID.
func (g *Generator) Nextval() (int64, error) {
	ids, err := g.Nextvals(1)
	if err != nil {
		return 0, err
	}
	return ids[0], nil
}

// Nextvals returns IDs in ascending order; all are lost if it returns an error.
func (g *Generator) Nextvals(count int) ([]int64, error) {
	ids, deadline := make([]int64, 0, count), g.monotonic()+g.MaxWait.Microseconds()
	for {
		problem, wait := g.issue(&ids, count)
		if len(ids) == count {
			return ids, nil
		}
		if left := microseconds(deadline - g.monotonic()); left < wait {
			wait = left
		}
		if wait <= 0 {
			return nil, problem
		}
		time.Sleep(wait)
	}
}

func microseconds(count int64) time.Duration { return time.Duration(count) * time.Microsecond }

// Append IDs; if there are too few, return the error and how long to wait first.
func (g *Generator) issue(ids *[]int64, count int) (*Error, time.Duration) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	now := g.floor(g.wall())
	if !g.isUsable(now) {
		wait := time.Duration(0) // the registry's last answer was no lease
		if g.state == claiming || g.state == held {
			wait = 50 * time.Millisecond
		}
		return &Error{"55000", g.state, g.reason}, wait
	}
	if now>>g.bits["timestamp"] != 0 {
		return &Error{"2200H", "after the last timestamp of the layout", ""}, 0
	}
	if g.tick < now {
		g.tick, g.sequence = now, 0
	}
	for len(*ids) < count && g.tick == now {
		*ids = append(*ids, g.tick<<g.shift["timestamp"]|g.lease.machineID<<g.shift["machine"]|g.sequence<<g.shift["sequence"])
		g.sequence++
		if g.sequence>>g.bits["sequence"] != 0 {
			g.tick, g.sequence = g.tick+1, 0
		}
	}
	if len(*ids) == count {
		return nil, 0
	}
	missing := microseconds(g.tick*g.tickLength + g.epoch - g.wall())
	problem := &Error{"53400", fmt.Sprint("within ", g.MaxWait), fmt.Sprint("The next ID can be issued in ", missing, ".")}
	if missing > 100*time.Millisecond {
		missing = 100 * time.Millisecond // the clock can be set meanwhile
	}
	if missing < time.Microsecond {
		missing = time.Microsecond
	}
	return problem, missing
}

// The tick in which an instant lies, and the first one that does not begin before it.
func (g *Generator) floor(instant int64) int64 {
	return g.ceiling(instant - g.tickLength + 1)
}

func (g *Generator) ceiling(instant int64) int64 {
	ticks := (instant - g.epoch) / g.tickLength
	if ticks*g.tickLength < instant-g.epoch {
		ticks++
	}
	return ticks
}

func (g *Generator) isUsable(tick int64) bool {
	return g.state != released && g.lease != nil && tick < g.ceiling(g.lease.until) && g.monotonic() < g.lease.ends
}

func (g *Generator) work() {
	defer close(g.done)
	for {
		wait := g.due()
		if wait > time.Second {
			wait = time.Second // the clock can be set meanwhile
		}
		select {
		case <-g.closing:
			return
		case <-time.After(wait):
		}
		select {
		case <-g.closing: // of two that are ready, Go chooses one at random
			return
		default:
		}
		if g.due() <= 0 {
			g.ask()
		}
	}
}

// How long until the registry is asked: between 3/8 and 1/2 of the lease, by both clocks.
func (g *Generator) due() time.Duration {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	now, monotonic := g.Clock()
	since, part := microseconds(monotonic-g.asked), (3+g.draw)/8
	if g.state == held {
		due := time.Duration(part*float64(g.Lease)) - since
		left := microseconds(g.lease.until-now) - time.Duration((1-part)*float64(g.Lease))
		if left < due {
			return left
		}
		return due
	}
	delay := g.delay
	if delay > g.Lease/8 && g.isUsable(g.floor(now)) {
		delay = g.Lease / 8
	}
	return time.Duration(float64(delay)*(1-g.draw/2)) - since
}

func (g *Generator) ask() {
	refusal := ""
	err := g.withRegistry(func(db *sql.Conn) (err error) {
		if lease := g.lease; lease != nil {
			refusal, err = g.call(db, renew, lease.machineID, lease.from, lease.until)
		}
		if err == nil && (g.lease == nil || refusal != "") {
			refusal, err = g.call(db, claim, g.layout, g.bits["machine"], nil)
		}
		return err
	})
	g.mutex.Lock()
	defer g.mutex.Unlock()
	state := held
	if err != nil {
		state, refusal = unreachable, err.Error()
	}
	if raised := (*pq.Error)(nil); refusal != "" && (err == nil || errors.As(err, &raised)) {
		state = refused
	}
	g.delay *= 2
	if g.delay < 250*time.Millisecond {
		g.delay = 250 * time.Millisecond
	}
	if g.delay > time.Minute {
		g.delay = time.Minute
	}
	if state == held {
		g.delay = 0
	}
	g.asked, g.draw = g.monotonic(), mathrand.Float64()
	if g.state != released {
		g.state, g.reason = state, refusal
	}
}

// Call a function with a connection to the first address for which it returns no error, which is first from then on.
func (g *Generator) withRegistry(use func(*sql.Conn) error) (err error) {
	for range g.addresses {
		if err = withAddress(g.addresses[0], use); err == nil {
			return nil
		}
		g.addresses = append(g.addresses[1:], g.addresses[0])
	}
	return err
}

func withAddress(address string, use func(*sql.Conn) error) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("%v", cause) // the driver panics if it is sent nonsense
		}
	}()
	connector, err := pq.NewConnector(address)
	if err != nil {
		return err
	}
	connector.Dialer(dialer(time.Now().Add(5 * time.Second)))
	db := sql.OpenDB(connector)
	defer db.Close()
	connection, err := db.Conn(context.Background())
	if err != nil {
		return err
	}
	defer connection.Close()
	return use(connection)
}

// All connections end at this time. lib/pq waits for an answer even after its context has ended, and lifts the deadline
// of a connection when it is established.
type dialer time.Time

type limited struct{ net.Conn }

func (limited) SetDeadline(time.Time) error { return nil }

func (d dialer) Dial(network, address string) (net.Conn, error) {
	connection, err := (&net.Dialer{Deadline: time.Time(d)}).Dial(network, address)
	if err != nil {
		return nil, err
	}
	return limited{connection}, connection.SetDeadline(time.Time(d))
}

func (d dialer) DialTimeout(network, address string, _ time.Duration) (net.Conn, error) {
	return d.Dial(network, address)
}

// Returns the refusal, if the answer is one.
func (g *Generator) call(db *sql.Conn, query string, own ...any) (string, error) {
	now, began := g.Clock()
	arguments := append(own, int(g.Lease.Seconds()), now, g.Holder, g.known)
	var machineID, from, until, number sql.NullInt64
	var refusal sql.NullString
	err := g.query(db, query, arguments, &machineID, &from, &until, &number, &refusal)
	if err != nil || refusal.Valid {
		return refusal.String, err
	}
	if !machineID.Valid || machineID.Int64>>g.bits["machine"] != 0 || from.Int64 >= until.Int64 || number.Int64 <= 0 {
		return "", fmt.Errorf("the registry sent an invalid answer: machine ID %v from %v until %v, number %v", machineID, from, until, number)
	}
	g.mutex.Lock()
	defer g.mutex.Unlock()
	if g.lease == nil || g.lease.machineID != machineID.Int64 || g.lease.from != from.Int64 {
		g.tick, g.sequence = g.unused(), 0
		if first := g.ceiling(from.Int64); g.tick < first {
			g.tick = first
		}
	}
	g.lease, g.known = &lease{machineID.Int64, from.Int64, until.Int64, began + until.Int64 - now}, number.Int64
	return "", nil
}

// Asks the registry that answered first, since another one can grant the same lease.
func (g *Generator) query(db *sql.Conn, query string, own []any, machineID, from, until, number *sql.NullInt64, refusal *sql.NullString) error {
	var skew, freeAt sql.NullInt64
	row := db.QueryRowContext(context.Background(), query, append([]any{g.identity, g.token}, own...)...)
	if err := row.Scan(machineID, from, until, number, &skew, refusal, &freeAt); err != nil || machineID.Valid || refusal.Valid || !number.Valid {
		return err
	}
	if g.identity.Valid {
		return fmt.Errorf("this is registry %d, not registry %d", number.Int64, g.identity.Int64)
	}
	g.identity = *number
	return g.query(db, query, own, machineID, from, until, number, refusal)
}

// The first tick that no ID has.
func (g *Generator) unused() int64 {
	if g.sequence > 0 {
		return g.tick + 1
	}
	return g.tick
}

// Close issues no more IDs, and releases the rest of the lease. If that fails, the lease runs out. All calls end together.
func (g *Generator) Close() {
	g.close.Do(func() {
		g.mutex.Lock()
		g.state = released
		g.mutex.Unlock()
		close(g.closing)
		<-g.done
		if g.lease == nil {
			return
		}
		_ = g.withRegistry(func(db *sql.Conn) error {
			var none sql.NullInt64
			var text sql.NullString
			return g.query(db, release, []any{g.unused()*g.tickLength + g.epoch, g.known}, &none, &none, &none, &none, &text)
		})
	})
}

// The clock of the test, since LD_PRELOAD does not change the clock of Go.
func clock() (wall, monotonic int64) {
	var offset, frozenAt, monotonicOffset int64
	wall, monotonic = SystemClock()
	if file, err := os.ReadFile(os.Getenv("SNOWFLAKE_TEST_CLOCK")); err == nil && len(file) >= 24 {
		offset = int64(binary.LittleEndian.Uint64(file))
		frozenAt = int64(binary.LittleEndian.Uint64(file[8:]))
		monotonicOffset = int64(binary.LittleEndian.Uint64(file[16:]))
	}
	if frozenAt != 0 {
		return frozenAt / 1000, monotonic + monotonicOffset/1000
	}
	return wall + offset/1000, monotonic + monotonicOffset/1000
}

// Answer a command of conformance.pl.
func respond(g *Generator, command string, counts ...int) string {
	switch command {
	case "fork":
		return "none" // Go has no such call
	case "close":
		g.Close()
		return "closed"
	}
	routines := 1
	if command == "threads" {
		routines, counts = counts[0], counts[1:]
	}
	answers := make(chan string, routines)
	for i := 0; i < routines; i++ {
		go func() {
			ids, err := g.Nextvals(counts[0])
			var failure *Error
			if errors.As(err, &failure) {
				answers <- "error " + failure.Code + " " + strings.ReplaceAll(failure.Error(), "\n", " ")
			} else {
				answers <- strings.Trim(fmt.Sprint(ids), "[]")
			}
		}()
	}
	all := <-answers
	for i := 1; i < routines; i++ {
		all += " " + <-answers
	}
	return all
}

func main() {
	seconds, err := strconv.Atoi(os.Getenv("SNOWFLAKE_LEASE"))
	if err != nil {
		log.Fatal(err)
	}
	wait, err := time.ParseDuration(os.Getenv("SNOWFLAKE_MAX_WAIT") + "s")
	if err != nil {
		wait = 5 * time.Second
	}
	generator := &Generator{Registry: os.Getenv("SNOWFLAKE_REGISTRY"), Layout: os.Getenv("SNOWFLAKE_LAYOUT"), Clock: clock,
		Holder: os.Getenv("SNOWFLAKE_HOLDER"), Lease: time.Duration(seconds) * time.Second, MaxWait: wait}
	if err := generator.Start(); err != nil {
		log.Fatal(err)
	}
	for input := bufio.NewScanner(os.Stdin); input.Scan(); {
		var counts []int
		words := strings.Fields(input.Text())
		for _, word := range words[1:] {
			count, _ := strconv.Atoi(word)
			counts = append(counts, count)
		}
		fmt.Println(respond(generator, words[0], counts...))
	}
}
