// Snowflake IDs that a Go program generates itself, with a machine ID that a registry leases to it.
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
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/lib/pq"
)

const (
	epochPlus = "timestamptz '1970-01-01 00:00:00Z' + interval '1 microsecond' * "
	commit    = "CALL snowflake_registry.commit("
	answer    = ", NULL, NULL, NULL, NULL, NULL, NULL, NULL)"
	length    = "$5::integer * interval '1 second', " + epochPlus + "$6::bigint, $7, $8::bigint)" + answer
	claim     = commit + "snowflake_registry.claim($1::uuid, $2, $3::integer, $4::integer, " + length
	renew     = commit + "snowflake_registry.renew($1::uuid, $2::integer, " + epochPlus + "$3::bigint, " + epochPlus + "$4::bigint, " + length
	release   = commit + "ROW(NULL, NULL, NULL, NULL, NULL, snowflake_registry.release($1::uuid, " + epochPlus +
		"$2::bigint, $3::bigint)::text, NULL)" + answer
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
	from, until int64     // microseconds since 1970
	ends        time.Time // by the monotonic clock
}

// Generator issues IDs. Set the exported fields, and call Start.
type Generator struct {
	Registry string        // connection string, which should have connect_timeout
	Layout   string        // definition, as the view snowflake_layouts shows it
	Lease    time.Duration // its length, in whole seconds
	MaxWait  time.Duration // longest wait of a call
	Holder   string
	Clock    func() int64 // microseconds since 1970

	epoch, tickLength int64 // microseconds
	bits, shift       map[string]int

	mutex          sync.Mutex
	token          string
	identity       int64
	tick, sequence int64 // of the next ID: they only move forward
	lease          *lease
	known          int64 // greatest lease number
	state, reason  string
	asked          time.Time
	delay          time.Duration
	draw           float64
	closing, done  chan struct{}
}

// Start begins to claim a lease.
func (g *Generator) Start() error {
	fields := strings.Fields(g.Layout)
	g.bits, g.shift = map[string]int{}, map[string]int{}
	shift := 0
	for i := len(fields) - 1; i >= 0; i-- {
		name, value, _ := strings.Cut(fields[i], "=")
		var err error
		switch name {
		case "epoch":
			var epoch time.Time
			epoch, err = time.Parse(time.RFC3339Nano, value)
			g.epoch = epoch.UnixMicro()
		case "tick":
			var tick time.Duration
			tick, err = time.ParseDuration(value)
			g.tickLength = tick.Microseconds()
		default:
			g.bits[name], err = strconv.Atoi(value)
			g.shift[name] = shift
			shift += g.bits[name]
		}
		if err != nil {
			return err
		}
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
	ids, deadline := make([]int64, 0, count), time.Now().Add(g.MaxWait)
	for {
		problem, wait := g.issue(&ids, count)
		if len(ids) == count {
			return ids, nil
		}
		if left := time.Until(deadline); left < wait {
			wait = left
		}
		if wait <= 0 {
			return nil, problem
		}
		time.Sleep(wait)
	}
}

// Append IDs; if there are too few, return the error and how long to wait first.
func (g *Generator) issue(ids *[]int64, count int) (*Error, time.Duration) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	now := g.floor(g.Clock())
	if !g.isUsable(now) {
		wait := time.Duration(0) // the registry's last answer was no lease
		if g.state == claiming || g.state == held {
			wait = 10 * time.Millisecond
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
	missing := time.Duration(g.tick*g.tickLength+g.epoch-g.Clock()) * time.Microsecond
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
	return g.state != released && g.lease != nil && tick < g.ceiling(g.lease.until) && time.Now().Before(g.lease.ends)
}

func (g *Generator) work() {
	defer close(g.done)
	for {
		wait := g.due()
		if wait <= 0 {
			g.ask()
		} else if wait > time.Second {
			wait = time.Second // the clock can be set meanwhile
		}
		select {
		case <-g.closing:
			return
		case <-time.After(wait):
		}
	}
}

// How long until the registry is asked: between 3/8 and 1/2 of the lease, by both clocks.
func (g *Generator) due() time.Duration {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	now, since, part := g.Clock(), time.Since(g.asked), (3+g.draw)/8
	if g.state == held {
		due := time.Duration(part*float64(g.Lease)) - since
		left := time.Duration(g.lease.until-now)*time.Microsecond - time.Duration((1-part)*float64(g.Lease))
		if left < due {
			return left
		}
		return due
	}
	longest := time.Second
	if g.isUsable(g.floor(now)) {
		longest = g.Lease / 8
	}
	if g.delay < longest {
		longest = g.delay
	}
	return time.Duration(float64(longest)*(1-g.draw/2)) - since
}

func (g *Generator) ask() {
	refusal := ""
	err := g.withRegistry(func(ctx context.Context, db *sql.Conn) (err error) {
		if lease := g.lease; lease != nil {
			refusal, err = g.call(ctx, db, renew, lease.machineID, lease.from, lease.until)
		}
		if err == nil && (g.lease == nil || refusal != "") {
			refusal, err = g.call(ctx, db, claim, g.Layout, g.bits["machine"], nil)
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
	if state == held {
		g.delay = 0
	} else if g.delay == 0 {
		g.delay = 250 * time.Millisecond
	} else if g.delay > time.Minute {
		g.delay = time.Minute
	}
	g.asked, g.draw = time.Now(), mathrand.Float64()
	if g.state != released {
		g.state, g.reason = state, refusal
	}
}

// A connection for 5 seconds, to the registry that was asked first: another one can grant the same lease.
func (g *Generator) withRegistry(use func(context.Context, *sql.Conn) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	db, err := sql.Open("postgres", g.Registry)
	if err != nil {
		return err
	}
	defer db.Close()
	connection, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer connection.Close()
	var identity int64
	if err := connection.QueryRowContext(ctx, "SELECT snowflake_registry.identity()").Scan(&identity); err != nil {
		return err
	}
	if g.identity == 0 {
		g.identity = identity
	}
	if identity != g.identity {
		return fmt.Errorf("this is registry %d, not registry %d", identity, g.identity)
	}
	return use(ctx, connection)
}

// Returns the refusal, if the answer is one.
func (g *Generator) call(ctx context.Context, db *sql.Conn, query string, own ...any) (string, error) {
	began, now := time.Now(), g.Clock()
	arguments := append(append([]any{g.token}, own...), int(g.Lease.Seconds()), now, g.Holder, g.known)
	var machineID, from, until, number, skew, freeAt sql.NullInt64
	var refusal sql.NullString
	err := db.QueryRowContext(ctx, query, arguments...).Scan(&machineID, &from, &until, &number, &skew, &refusal, &freeAt)
	if err != nil || refusal.Valid {
		return refusal.String, err
	}
	g.mutex.Lock()
	defer g.mutex.Unlock()
	if g.lease == nil || g.lease.machineID != machineID.Int64 || g.lease.from != from.Int64 {
		g.tick, g.sequence = g.unused(), 0
		if first := g.ceiling(from.Int64); g.tick < first {
			g.tick = first
		}
	}
	ends := began.Add(time.Duration(until.Int64-now) * time.Microsecond)
	g.lease, g.known = &lease{machineID.Int64, from.Int64, until.Int64, ends}, number.Int64
	return "", nil
}

// The first tick that no ID has.
func (g *Generator) unused() int64 {
	if g.sequence > 0 {
		return g.tick + 1
	}
	return g.tick
}

// Close issues no more IDs, and releases the rest of the lease. If that fails, the lease runs out.
func (g *Generator) Close() {
	g.mutex.Lock()
	g.state = released
	g.mutex.Unlock()
	close(g.closing)
	<-g.done
	if g.lease != nil {
		_ = g.withRegistry(func(ctx context.Context, db *sql.Conn) error {
			_, err := db.ExecContext(ctx, release, g.token, g.unused()*g.tickLength+g.epoch, g.known)
			return err
		})
	}
}

// The clock of the test, since LD_PRELOAD does not change that of Go.
func clock() int64 {
	offset, err := os.ReadFile(os.Getenv("SNOWFLAKE_TEST_CLOCK"))
	if err != nil || len(offset) < 8 {
		return time.Now().UnixMicro()
	}
	return time.Now().UnixMicro() + int64(binary.LittleEndian.Uint64(offset))/1000
}

func main() {
	seconds, err := strconv.Atoi(os.Getenv("SNOWFLAKE_LEASE"))
	if err != nil {
		log.Fatal(err)
	}
	generator := &Generator{Registry: os.Getenv("SNOWFLAKE_REGISTRY"), Layout: os.Getenv("SNOWFLAKE_LAYOUT"), Clock: clock,
		Holder: os.Getenv("SNOWFLAKE_HOLDER"), Lease: time.Duration(seconds) * time.Second, MaxWait: 5 * time.Second}
	if err := generator.Start(); err != nil {
		log.Fatal(err)
	}
	for input := bufio.NewScanner(os.Stdin); input.Scan(); {
		if input.Text() == "close" {
			generator.Close()
			fmt.Println("closed")
			continue
		}
		count, _ := strconv.Atoi(strings.TrimPrefix(input.Text(), "next "))
		ids, err := generator.Nextvals(count)
		var failure *Error
		if errors.As(err, &failure) {
			fmt.Println("error", failure.Code, strings.ReplaceAll(failure.Error(), "\n", " "))
			continue
		}
		fmt.Println(strings.Trim(fmt.Sprint(ids), "[]"))
	}
}
