// The throw-away control plane of the tests, the benchmarks and the quickstart:
// etcd, kube-apiserver and two controllers of kube-controller-manager (the ones
// that end namespaces and collect what lost its owner) in one process, on free
// ports of 127.0.0.1. It keeps nothing, and it ends with the process that
// started it: when standard input reaches its end, or on SIGTERM or SIGINT.
//
// When everything answers it prints one line of JSON on standard output:
//
//	{"server":"https://127.0.0.1:PORT","kubeconfig":"…/admin.kubeconfig","dataDir":"…","objects":"http://127.0.0.1:PORT/objects"}
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"syscall"
)

// ready is the line that tells the starter where everything is.
type ready struct {
	Server     string `json:"server"`
	Kubeconfig string `json:"kubeconfig"`
	DataDir    string `json:"dataDir"`
	Objects    string `json:"objects"`
}

func main() {
	dataDir := flag.String("data-dir", "", "where certificates, tokens, kubeconfigs and the log are written; a temporary directory that is removed at the end where this is not given")
	removeDataDir := flag.Bool("remove-data-dir", false, "remove --data-dir at the end too, unless starting failed")
	users := flag.Int("users", 200, "how many ordinary users, user-0 and up, to make; they have no rights")
	flag.Parse()

	people := os.Stderr
	place, err := newPlace(*dataDir, *removeDataDir)
	if err != nil {
		fmt.Fprintln(people, "controlplane:", err)
		os.Exit(1)
	}
	failed := make(chan error)
	go func() { failed <- run(context.Background(), place, *users) }()

	select {
	case err = <-failed:
		fmt.Fprintf(people, "controlplane: %v; the log is %s\n", err, place.logFile())
		place.removeState()
		os.Exit(1)
	case <-starterGone():
		// Nothing here is worth an orderly shutdown: no one reads it again.
		place.remove()
		os.Exit(0)
	}
}

// starterGone is closed when the starter ended or asked this process to end.
func starterGone() <-chan struct{} {
	gone := make(chan struct{})
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	input := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(input)
	}()
	go func() {
		select {
		case <-signals:
		case <-input:
		}
		close(gone)
	}()
	return gone
}

// run starts the parts in the order in which they need each other, prints the
// ready line, and returns only when one of them failed.
func run(ctx context.Context, place *place, users int) error {
	log, err := os.Create(place.logFile())
	if err != nil {
		return err
	}
	// Every part logs to standard error; what a person must know is returned.
	os.Stderr = log
	if err := debug.SetCrashOutput(log, debug.CrashOptions{}); err != nil {
		return err
	}

	if err := writeCertificates(place); err != nil {
		return fmt.Errorf("making certificates: %w", err)
	}
	listener, server, err := listen()
	if err != nil {
		return err
	}
	if err := writeCredentials(place, server, users); err != nil {
		return fmt.Errorf("writing tokens and kubeconfigs: %w", err)
	}
	etcd, err := startEtcd(place)
	if err != nil {
		return fmt.Errorf("starting etcd: %w", err)
	}

	ended := make(chan error)
	go func() { ended <- fmt.Errorf("etcd ended: %w", <-etcd.Err()) }()
	objects, err := serveObjects(ctx, etcd.Server, ended)
	if err != nil {
		return fmt.Errorf("serving objects: %w", err)
	}
	apiServer, err := parseOptions(place, etcd.Clients[0].Addr().String(), listener)
	if err != nil {
		return err
	}
	go func() { ended <- fmt.Errorf("kube-apiserver ended: %w", runAPIServer(ctx, apiServer)) }()

	answers := make(chan error)
	go func() { answers <- waitUntilServing(ctx, place) }()
	if err := either(answers, ended); err != nil {
		return err
	}
	controllers, err := newControllers(ctx, place)
	if err != nil {
		return fmt.Errorf("making the controllers: %w", err)
	}
	go controllers.run(ctx)
	go func() { answers <- waitUntilCollecting(ctx, place) }()
	if err := either(answers, ended); err != nil {
		return err
	}

	line, err := json.Marshal(ready{Server: server, Kubeconfig: place.adminKubeconfig(), DataDir: place.dir, Objects: objects})
	if err != nil {
		return err
	}
	fmt.Println(string(line))
	return <-ended
}

// either returns the first answer of the two.
func either(answers, ended <-chan error) error {
	select {
	case err := <-answers:
		return err
	case err := <-ended:
		return err
	}
}

// place is the directory that holds everything of one control plane.
type place struct {
	dir       string
	throwAway bool
}

func newPlace(dir string, throwAway bool) (*place, error) {
	if dir == "" {
		temporary, err := os.MkdirTemp("", "controlplane-")
		return &place{dir: temporary, throwAway: true}, err
	}
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	return &place{dir: absolute, throwAway: throwAway}, os.MkdirAll(absolute, 0o700)
}

func (p *place) file(name string) string { return filepath.Join(p.dir, name) }
func (p *place) logFile() string         { return p.file("controlplane.log") }
func (p *place) adminKubeconfig() string { return p.file("admin.kubeconfig") }
func (p *place) etcdDir() string         { return p.file("etcd") }

// removeState removes what no one can use after the end, and leaves the log.
func (p *place) removeState() { removeWhileWritten(p.etcdDir()) }

func (p *place) remove() {
	if p.throwAway {
		removeWhileWritten(p.dir)
	} else {
		p.removeState()
	}
}

// removeWhileWritten tries again a few times, since the parts that still run
// may make a file between the listing of a directory and its removal.
func removeWhileWritten(dir string) {
	for range 5 {
		if os.RemoveAll(dir) == nil {
			return
		}
	}
}
