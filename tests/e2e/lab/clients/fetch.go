// fetch CA URL...: one line for each URL, its status or its error. Built without cgo, so that names
// are looked up by Go's own resolver.
package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

func main() {
	pem, err := os.ReadFile(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	client := http.Client{Timeout: 25 * time.Second, Transport: &http.Transport{
		TLSClientConfig:   &tls.Config{RootCAs: roots},
		ForceAttemptHTTP2: true,
		DisableKeepAlives: true,
	}}
	for _, url := range os.Args[2:] {
		response, err := client.Get(url)
		if err != nil {
			fmt.Println(url, "error", err)
			continue
		}
		io.Copy(io.Discard, response.Body)
		response.Body.Close()
		fmt.Println(url, response.StatusCode)
	}
}
