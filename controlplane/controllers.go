package main

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/controller-manager/pkg/informerfactory"
	"k8s.io/kubernetes/pkg/controller/garbagecollector"
	"k8s.io/kubernetes/pkg/controller/namespace"
)

// The values of kube-controller-manager.
const (
	namespaceWorkers      = 10
	namespaceResyncPeriod = 5 * time.Minute
	garbageWorkers        = 20
	garbageSyncPeriod     = 30 * time.Second
)

// controllers are the two of kube-controller-manager that a test can see: the one that ends
// namespaces, and the one that collects what lost its owner. They start from their own packages,
// since that program brings every controller, the scheduler and the kubelet, a quarter of the build.
type controllers struct {
	discovery discovery.DiscoveryInterface
	informers []interface{ Start(<-chan struct{}) }
	namespace *namespace.NamespaceController
	garbage   *garbagecollector.GarbageCollector
	// started tells the garbage collector that its informers may be waited for.
	started chan struct{}
}

func newControllers(ctx context.Context, place *place) (*controllers, error) {
	config, err := clientcmd.BuildConfigFromFlags("", place.adminKubeconfig())
	if err != nil {
		return nil, err
	}
	// No limit: a test that deletes hundreds of objects must not wait for the pace that spares a
	// large cluster.
	config.QPS = -1
	client, err := kubernetes.NewForConfig(asProtobuf(config))
	if err != nil {
		return nil, err
	}
	objects, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}

	typed := informers.NewSharedInformerFactory(client, 0)
	untyped := metadatainformer.NewSharedInformerFactory(objects, 0)
	namespaces := namespace.NewNamespaceController(
		ctx, client, objects, client.Discovery().ServerPreferredNamespacedResources,
		typed.Core().V1().Namespaces(), namespaceResyncPeriod, corev1.FinalizerKubernetes)

	started := make(chan struct{})
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client.Discovery()))
	garbage, err := garbagecollector.NewGarbageCollector(ctx, client, objects, mapper,
		garbagecollector.DefaultIgnoredResources(), informerfactory.NewInformerFactory(typed, untyped), started)
	if err != nil {
		return nil, err
	}
	return &controllers{
		discovery: client.Discovery(),
		informers: []interface{ Start(<-chan struct{}) }{typed, untyped},
		namespace: namespaces,
		garbage:   garbage,
		started:   started,
	}, nil
}

func asProtobuf(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	return config
}

// run starts both controllers and returns when the context is done.
func (c *controllers) run(ctx context.Context) {
	for _, informers := range c.informers {
		informers.Start(ctx.Done())
	}
	close(c.started)
	go c.namespace.Run(ctx, namespaceWorkers)
	go c.garbage.Sync(ctx, c.discovery, garbageSyncPeriod)
	c.garbage.Run(ctx, garbageWorkers, garbageSyncPeriod)
}
