package main

import (
	"context"
	"net"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/client-go/rest"
	cliflag "k8s.io/component-base/cli/flag"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	apiserveroptions "k8s.io/kubernetes/cmd/kube-apiserver/app/options"
)

func apiServerFlags(place *place, etcd string) []string {
	return []string{
		"--etcd-servers=http://" + etcd,
		"--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1",
		// An endpoint of the service `kubernetes` must not be a loopback address.
		"--endpoint-reconciler-type=none",
		"--tls-cert-file=" + place.file(serverCertificate),
		"--tls-private-key-file=" + place.file(serverKey),
		"--client-ca-file=" + place.file(authorityCertificate),
		"--token-auth-file=" + place.file(tokensFile),
		"--authorization-mode=RBAC",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + place.file(serviceAccountKey),
		"--service-account-signing-key-file=" + place.file(serviceAccountKey),
		// Without the controller that makes the account `default` of each
		// namespace, this plugin would refuse every pod.
		"--disable-admission-plugins=ServiceAccount",
		"--service-cluster-ip-range=10.0.0.0/16",
		"--allow-privileged=true",
		"--requestheader-client-ca-file=" + place.file(authorityCertificate),
		"--requestheader-allowed-names=" + proxyName,
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + place.file(proxyCertificate),
		"--proxy-client-key-file=" + place.file(proxyKey),
	}
}

func parseOptions(place *place, etcd string, listener net.Listener) (*apiserveroptions.ServerRunOptions, error) {
	server := apiserveroptions.NewServerRunOptions()
	if err := parse(server.Flags(), apiServerFlags(place, etcd)); err != nil {
		return nil, err
	}
	server.SecureServing.Listener = listener
	server.SecureServing.BindPort = listener.Addr().(*net.TCPAddr).Port
	// The controllers ask for beta kinds that only old clients care about.
	rest.SetDefaultWarningHandler(rest.NoWarnings{})
	return server, server.GenericServerRunOptions.ComponentGlobalsRegistry.Set()
}

func parse(sets cliflag.NamedFlagSets, arguments []string) error {
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	for _, set := range sets.FlagSets {
		flags.AddFlagSet(set)
	}
	return flags.Parse(arguments)
}

func runAPIServer(ctx context.Context, options *apiserveroptions.ServerRunOptions) error {
	completed, err := options.Complete(ctx)
	if err != nil {
		return err
	}
	if problems := completed.Validate(); len(problems) > 0 {
		return errors.NewAggregate(problems)
	}
	return apiserver.Run(ctx, completed)
}

// listen takes a free port now, so that no one else can have it when the API
// server comes to serve on it, and returns its address for clients.
func listen() (net.Listener, string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, "", err
	}
	return listener, "https://" + listener.Addr().String(), nil
}
