package main

import (
	"crypto/rand"
	"fmt"
	"os"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// tokensFile has a line `token,name,uid[,"groups"]` per user, the form of
// kube-apiserver's --token-auth-file.
const tokensFile = "tokens.csv"

// writeCredentials makes a token for the admin and for each ordinary user, and
// two kubeconfigs of the admin: one with the token, one with the certificate.
func writeCredentials(place *place, server string, users int) error {
	adminToken := rand.Text()
	var tokens strings.Builder
	fmt.Fprintf(&tokens, "%s,%s,%s,%q\n", adminToken, adminName, adminName, adminGroup)
	for number := range users {
		name := fmt.Sprintf("user-%d", number)
		fmt.Fprintf(&tokens, "%s,%s,%s\n", rand.Text(), name, name)
	}
	if err := os.WriteFile(place.file(tokensFile), []byte(tokens.String()), 0o600); err != nil {
		return err
	}

	withToken := &api.AuthInfo{Token: adminToken}
	if err := writeKubeconfig(place, place.adminKubeconfig(), server, withToken); err != nil {
		return err
	}
	withCertificate := &api.AuthInfo{
		ClientCertificate: place.file(adminCertificate),
		ClientKey:         place.file(adminKey),
	}
	file := place.file("admin-certificate.kubeconfig")
	return writeKubeconfig(place, file, server, withCertificate)
}

func writeKubeconfig(place *place, file, server string, who *api.AuthInfo) error {
	const name = "controlplane"
	config := api.NewConfig()
	config.Clusters[name] = &api.Cluster{Server: server, CertificateAuthority: place.file(authorityCertificate)}
	config.AuthInfos[adminName] = who
	config.Contexts[name] = &api.Context{Cluster: name, AuthInfo: adminName}
	config.CurrentContext = name
	return clientcmd.WriteToFile(*config, file)
}
