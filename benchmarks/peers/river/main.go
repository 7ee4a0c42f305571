// The process of River: does what the lines of its standard input say, as ContenderProcess tells.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

type payload struct {
	Stamp  int64 `json:"stamp"`
	Millis int   `json:"millis"`
}

func (payload) Kind() string { return "noop" }

type probe struct {
	river.WorkerDefaults[payload]
	ran   atomic.Int64
	lock  sync.Mutex
	waits [][2]int64
}

func (p *probe) Work(_ context.Context, job *river.Job[payload]) error {
	if job.Args.Stamp > 0 {
		wait := time.Now().UnixMicro() - job.Args.Stamp
		p.lock.Lock()
		p.waits = append(p.waits, [2]int64{job.Args.Stamp, wait})
		p.lock.Unlock()
	}
	if job.Args.Millis > 0 {
		time.Sleep(time.Duration(job.Args.Millis) * time.Millisecond)
	}
	p.ran.Add(1)
	return nil
}

func (p *probe) takeWaits() [][2]int64 {
	p.lock.Lock()
	defer p.lock.Unlock()
	taken := p.waits
	p.waits = nil
	return append([][2]int64{}, taken...)
}

type load struct {
	added  atomic.Int64
	ending atomic.Bool
	done   chan error
}

type process struct {
	pool     *pgxpool.Pool
	probe    *probe
	inserter *river.Client[pgx.Tx]
	client   *river.Client[pgx.Tx]
	load     *load
}

var logger = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))

func (p *process) newClient(working bool) (*river.Client[pgx.Tx], error) {
	config := &river.Config{Logger: logger}
	if working {
		workers := river.NewWorkers()
		river.AddWorker(workers, p.probe)
		config.Workers = workers
		config.Queues = map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 2_000}}
		config.FetchCooldown = 2 * time.Millisecond
		config.FetchPollInterval = 20 * time.Millisecond
	}
	return river.NewClient(riverpgxv5.New(p.pool), config)
}

func (p *process) addAll(ctx context.Context, count int64) error {
	jobs := make([]river.InsertManyParams, count)
	for i := range jobs {
		jobs[i] = river.InsertManyParams{Args: payload{}}
	}
	_, err := p.inserter.InsertManyFast(ctx, jobs)
	return err
}

func (p *process) constantLoad(ctx context.Context, rate int64, l *load) error {
	start := time.Now()
	for !l.ending.Load() {
		time.Sleep(10 * time.Millisecond)
		due := int64(time.Since(start).Seconds() * float64(rate))
		missing := min(due-l.added.Load(), max(1, rate/10))
		if missing > 0 {
			if err := p.addAll(ctx, missing); err != nil {
				return err
			}
			l.added.Add(missing)
		}
	}
	return nil
}

// Adds stamped jobs with random pauses around the gap; with a lead they are due that much later.
func (p *process) ping(ctx context.Context, count, gap, lead int64) error {
	for range count {
		time.Sleep(time.Duration(gap/2+rand.Int63n(gap+1)) * time.Millisecond)
		at := time.Now().Add(time.Duration(lead) * time.Millisecond)
		var options *river.InsertOpts
		if lead > 0 {
			options = &river.InsertOpts{ScheduledAt: at}
		}
		if _, err := p.inserter.Insert(ctx, payload{Stamp: at.UnixMicro()}, options); err != nil {
			return err
		}
	}
	return nil
}

func (p *process) create(ctx context.Context) error {
	migrator, err := rivermigrate.New(riverpgxv5.New(p.pool), &rivermigrate.Config{Logger: logger})
	if err != nil {
		return err
	}
	_, err = migrator.Migrate(ctx, rivermigrate.DirectionUp, nil)
	return err
}

func (p *process) start(ctx context.Context) error {
	client, err := p.newClient(true)
	if err != nil {
		return err
	}
	p.client = client
	return client.Start(ctx)
}

func (p *process) stop(ctx context.Context) error {
	if p.client == nil {
		return nil
	}
	defer func() { p.client = nil }()
	return p.client.Stop(ctx)
}

func seconds(work func() error) (any, error) {
	start := time.Now()
	err := work()
	return time.Since(start).Seconds(), err
}

func (p *process) obey(ctx context.Context, name string, numbers []int64) (any, error) {
	switch name {
	case "create":
		return 0, p.create(ctx)
	case "start":
		return 0, p.start(ctx)
	case "stop":
		return 0, p.stop(ctx)
	case "ran":
		return p.probe.ran.Load(), nil
	case "waits":
		return p.probe.takeWaits(), nil
	case "heap":
		var memory runtime.MemStats
		runtime.ReadMemStats(&memory)
		return memory.HeapAlloc, nil
	case "add":
		return seconds(func() error {
			for range numbers[0] {
				if _, err := p.inserter.Insert(ctx, payload{}, nil); err != nil {
					return err
				}
			}
			return nil
		})
	case "bulk":
		return seconds(func() error {
			for left := numbers[0]; left > 0; left -= numbers[1] {
				if err := p.addAll(ctx, min(left, numbers[1])); err != nil {
					return err
				}
			}
			return nil
		})
	case "ping":
		return numbers[0], p.ping(ctx, numbers[0], numbers[1], numbers[2])
	case "load":
		l := &load{done: make(chan error, 1)}
		go func() { l.done <- p.constantLoad(ctx, numbers[0], l) }()
		p.load = l
		return 0, nil
	case "added":
		if p.load == nil {
			return 0, nil
		}
		return p.load.added.Load(), nil
	case "unload":
		if p.load == nil {
			return 0, nil
		}
		ending := p.load
		p.load = nil
		ending.ending.Store(true)
		err := <-ending.done
		return ending.added.Load(), err
	}
	return nil, fmt.Errorf("unknown command %s", name)
}

func run(ctx context.Context, url string) error {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return err
	}
	config.MaxConns = 30
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return err
	}
	defer pool.Close()
	p := &process{pool: pool, probe: &probe{}}
	if p.inserter, err = p.newClient(false); err != nil {
		return err
	}
	commands := bufio.NewScanner(os.Stdin)
	for commands.Scan() {
		words := strings.Fields(commands.Text())
		numbers := make([]int64, 0, len(words))
		for _, word := range words[1:] {
			number, err := strconv.ParseInt(word, 10, 64)
			if err != nil {
				return err
			}
			numbers = append(numbers, number)
		}
		answer, err := p.obey(ctx, words[0], numbers)
		if err != nil {
			return err
		}
		text, err := json.Marshal(answer)
		if err != nil {
			return err
		}
		fmt.Printf("=%s\n", text)
	}
	return p.stop(ctx)
}

func main() {
	if err := run(context.Background(), os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "river:", err)
		os.Exit(1)
	}
}
