package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/etcdserver"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// objectPrefix begins the keys of all objects: /registry/…/NAME, or /registry/…/NAMESPACE/NAME.
const objectPrefix = "/registry/"

// protobufPrefix begins what is kept of a built-in kind; custom resources are kept as JSON.
var protobufPrefix = []byte("k8s\x00")

// object is what a test has to know of an object that it did not ask for by name.
type object struct {
	APIVersion      string `json:"apiVersion"`
	Kind            string `json:"kind"`
	Namespace       string `json:"namespace,omitempty"`
	Name            string `json:"name"`
	ResourceVersion string `json:"resourceVersion"`
	IsTerminating   bool   `json:"isTerminating"`
	labels          map[string]string
}

// objects answers from what etcd keeps what would take a list of every kind from the API server:
//
//	GET /objects?namespace=A&namespace=B   these namespaces and all that is in them
//	GET /objects?label=KEY%3DVALUE         all that has this label, in any place
//
// An object that two groups serve is one, of the kind as which it is kept. It follows etcd, since
// reading all of it for each answer would take longer than the lists.
type objects struct {
	etcd *clientv3.Client

	lock     sync.Mutex
	byKey    map[string]object
	revision int64
}

// serveObjects serves on a free port and returns the address; a failure later is sent to ended.
func serveObjects(ctx context.Context, etcd *etcdserver.EtcdServer, ended chan<- error) (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	objects := &objects{etcd: v3client.New(etcd), byKey: map[string]object{}}
	paths := http.NewServeMux()
	paths.Handle("/objects", objects)
	go func() { ended <- fmt.Errorf("following etcd ended: %w", objects.follow(ctx)) }()
	go func() { ended <- fmt.Errorf("serving objects ended: %w", http.Serve(listener, paths)) }()
	return "http://" + listener.Addr().String() + "/objects", nil
}

func (o *objects) ServeHTTP(answer http.ResponseWriter, request *http.Request) {
	query := request.URL.Query()
	namespaces := query["namespace"]
	key, value, isLabel := strings.Cut(query.Get("label"), "=")
	found, err := o.find(request.Context(), func(object object) bool {
		if label, has := object.labels[key]; isLabel {
			return has && label == value
		}
		return slices.Contains(namespaces, object.place())
	})
	if err != nil {
		http.Error(answer, err.Error(), http.StatusInternalServerError)
		return
	}
	answer.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(answer).Encode(found)
}

// place is the namespace that the object is in, or is.
func (o object) place() string {
	if o.APIVersion == "v1" && o.Kind == "Namespace" {
		return o.Name
	}
	return o.Namespace
}

// find looks at everything that was written before it was called.
func (o *objects) find(ctx context.Context, isWanted func(object) bool) ([]object, error) {
	now, err := o.etcd.Get(ctx, objectPrefix, clientv3.WithCountOnly())
	if err != nil {
		return nil, err
	}
	for !o.hasSeen(now.Header.Revision) {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(time.Millisecond):
		}
	}
	o.lock.Lock()
	defer o.lock.Unlock()
	found := []object{}
	for _, object := range o.byKey {
		if isWanted(object) {
			found = append(found, object)
		}
	}
	return found, nil
}

func (o *objects) hasSeen(revision int64) bool {
	o.lock.Lock()
	defer o.lock.Unlock()
	return o.revision >= revision
}

// follow takes in what there is, and then each change of any key: every revision has one.
func (o *objects) follow(ctx context.Context) error {
	first, err := o.etcd.Get(ctx, objectPrefix, clientv3.WithPrefix())
	if err != nil {
		return err
	}
	changes := make([]*clientv3.Event, 0, len(first.Kvs))
	for _, kept := range first.Kvs {
		changes = append(changes, &clientv3.Event{Type: clientv3.EventTypePut, Kv: kept})
	}
	if err := o.take(changes, first.Header.Revision); err != nil {
		return err
	}
	for answer := range o.etcd.Watch(ctx, "\x00", clientv3.WithFromKey(), clientv3.WithRev(first.Header.Revision+1)) {
		if err := answer.Err(); err != nil {
			return err
		}
		// The header may be of a revision whose changes come with the next answer.
		if last := len(answer.Events) - 1; last >= 0 {
			if err := o.take(answer.Events, answer.Events[last].Kv.ModRevision); err != nil {
				return err
			}
		}
	}
	return ctx.Err()
}

func (o *objects) take(changes []*clientv3.Event, revision int64) error {
	o.lock.Lock()
	defer o.lock.Unlock()
	for _, change := range changes {
		key := string(change.Kv.Key)
		if change.Type == clientv3.EventTypeDelete {
			delete(o.byKey, key)
			continue
		}
		if !strings.HasPrefix(key, objectPrefix) {
			continue
		}
		metadata, err := decode(change.Kv.Value)
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		// The API server also keeps notes of its own, which have no name.
		if metadata.Name != "" {
			o.byKey[key] = object{
				APIVersion:      metadata.APIVersion,
				Kind:            metadata.Kind,
				Namespace:       metadata.Namespace,
				Name:            metadata.Name,
				ResourceVersion: strconv.FormatInt(change.Kv.ModRevision, 10),
				IsTerminating:   metadata.DeletionTimestamp != nil,
				labels:          metadata.Labels,
			}
		}
	}
	o.revision = revision
	return nil
}

// decode reads the metadata: the first field of all built-in kinds, as it is here.
func decode(value []byte) (*metav1.PartialObjectMetadata, error) {
	decoded := &metav1.PartialObjectMetadata{}
	encoded, isProtobuf := bytes.CutPrefix(value, protobufPrefix)
	if !isProtobuf {
		return decoded, json.Unmarshal(value, decoded)
	}
	var unknown runtime.Unknown
	if err := unknown.Unmarshal(encoded); err != nil {
		return nil, err
	}
	if err := decoded.Unmarshal(unknown.Raw); err != nil {
		return nil, err
	}
	decoded.APIVersion, decoded.Kind = unknown.APIVersion, unknown.Kind
	return decoded, nil
}
