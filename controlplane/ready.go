package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	patience = 2 * time.Minute
	interval = 20 * time.Millisecond
)

// connect returns a client with the rights of the admin.
func connect(place *place) (kubernetes.Interface, error) {
	config, err := clientcmd.BuildConfigFromFlags("", place.adminKubeconfig())
	if err != nil {
		return nil, err
	}
	return kubernetes.NewForConfig(config)
}

// waitUntilServing waits until the API server calls itself ready and has made
// the namespace `default`, which it does a moment later.
func waitUntilServing(ctx context.Context, place *place) error {
	admin, err := connect(place)
	if err != nil {
		return err
	}
	err = poll(ctx, func(ctx context.Context) bool {
		_, err := admin.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
		return err == nil
	})
	if err != nil {
		return fmt.Errorf("kube-apiserver does not get ready: %w", err)
	}
	err = poll(ctx, func(ctx context.Context) bool {
		_, err := admin.CoreV1().Namespaces().Get(ctx, metav1.NamespaceDefault, metav1.GetOptions{})
		return err == nil
	})
	if err != nil {
		return fmt.Errorf("the namespace %s does not appear: %w", metav1.NamespaceDefault, err)
	}
	return nil
}

// waitUntilCollecting proves that the controllers work: it makes an object of
// an owner that never was, and waits until the garbage collector removed it.
func waitUntilCollecting(ctx context.Context, place *place) error {
	admin, err := connect(place)
	if err != nil {
		return err
	}
	configMaps := admin.CoreV1().ConfigMaps(metav1.NamespaceDefault)
	orphan := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "controlplane-ready-",
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "v1", Kind: "ConfigMap", Name: "never-was", UID: uuid.NewUUID(),
		}},
	}}
	made, err := configMaps.Create(ctx, orphan, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	err = poll(ctx, func(ctx context.Context) bool {
		_, err := configMaps.Get(ctx, made.Name, metav1.GetOptions{})
		return errors.IsNotFound(err)
	})
	if err != nil {
		return fmt.Errorf("the garbage collector does not work: %w", err)
	}
	return nil
}

func poll(ctx context.Context, condition func(context.Context) bool) error {
	return wait.PollUntilContextTimeout(ctx, interval, patience, true, func(ctx context.Context) (bool, error) {
		return condition(ctx), nil
	})
}
