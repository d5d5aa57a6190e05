package main

import (
	"net/url"

	"go.etcd.io/etcd/server/v3/embed"
)

// startEtcd runs etcd in this process, on free ports. It never syncs to disk:
// the data is gone with the process anyhow, and tests wait for each write.
func startEtcd(place *place) (*embed.Etcd, error) {
	anyPort := []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	config := embed.NewConfig()
	config.Name = "controlplane"
	config.Dir = place.etcdDir()
	config.UnsafeNoFsync = true
	config.EnableGRPCGateway = false
	// An embedded etcd has 0 here, and would log every single request.
	config.WarningUnaryRequestDuration = embed.DefaultWarningUnaryRequestDuration
	config.LogLevel = "warn"
	config.LogOutputs = []string{place.file("etcd.log")}
	config.ListenClientUrls = anyPort
	config.AdvertiseClientUrls = anyPort
	config.ListenPeerUrls = anyPort
	config.AdvertisePeerUrls = anyPort
	config.InitialCluster = config.InitialClusterFromName(config.Name)

	server, err := embed.StartEtcd(config)
	if err != nil {
		return nil, err
	}
	select {
	case <-server.Server.ReadyNotify():
		return server, nil
	case err := <-server.Err():
		return nil, err
	}
}
