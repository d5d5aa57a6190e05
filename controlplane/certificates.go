package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// One authority signs the server's certificate and those of its clients. Its
// key stays in the directory, so that a test can sign certificates of its own.
const (
	authorityCertificate = "ca.crt"
	authorityKey         = "ca.key"
	serverCertificate    = "apiserver.crt"
	serverKey            = "apiserver.key"
	adminCertificate     = "admin.crt"
	adminKey             = "admin.key"
	proxyCertificate     = "front-proxy-client.crt"
	proxyKey             = "front-proxy-client.key"
	serviceAccountKey    = "service-account.key"

	// proxyName is who the API server is towards aggregated API servers.
	proxyName = "front-proxy-client"
	adminName = "admin"
	// adminGroup is the group that the API server's authorizers always allow.
	adminGroup = "system:masters"

	lifetime = 365 * 24 * time.Hour
)

type authority struct {
	certificate *x509.Certificate
	key         crypto.Signer
}

func writeCertificates(place *place) error {
	key, err := writeKey(place, authorityKey)
	if err != nil {
		return err
	}
	certificate, err := cert.NewSelfSignedCACert(cert.Config{CommonName: "controlplane"}, key)
	if err != nil {
		return err
	}
	if err := writeCertificate(place, authorityCertificate, certificate.Raw); err != nil {
		return err
	}
	signer := authority{certificate: certificate, key: key}

	server := &x509.Certificate{
		Subject:     pkix.Name{CommonName: "kube-apiserver"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:    []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv4(10, 0, 0, 1)},
	}
	if err := signer.issue(place, server, serverCertificate, serverKey); err != nil {
		return err
	}
	if err := signer.issue(place, client(adminName, adminGroup), adminCertificate, adminKey); err != nil {
		return err
	}
	if err := signer.issue(place, client(proxyName), proxyCertificate, proxyKey); err != nil {
		return err
	}
	_, err = writeKey(place, serviceAccountKey)
	return err
}

func client(name string, groups ...string) *x509.Certificate {
	return &x509.Certificate{
		Subject:     pkix.Name{CommonName: name, Organization: groups},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
}

func (a authority) issue(place *place, template *x509.Certificate, certificateFile, keyFile string) error {
	key, err := writeKey(place, keyFile)
	if err != nil {
		return err
	}
	template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return err
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.NotBefore = a.certificate.NotBefore
	template.NotAfter = time.Now().Add(lifetime)
	raw, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		return err
	}
	return writeCertificate(place, certificateFile, raw)
}

func writeCertificate(place *place, name string, raw []byte) error {
	parsed, err := x509.ParseCertificate(raw)
	if err != nil {
		return err
	}
	encoded, err := cert.EncodeCertificates(parsed)
	if err != nil {
		return err
	}
	return cert.WriteCert(place.file(name), encoded)
}

func writeKey(place *place, name string) (crypto.Signer, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	encoded, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return nil, err
	}
	return key, keyutil.WriteKey(place.file(name), encoded)
}
