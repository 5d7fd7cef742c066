// trusted PORT...: asks each server at localhost, with the roots that Go finds by itself.
// trusted -roots: prints how many of those roots are a sandbox's own.
package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
)

func main() {
	if os.Args[1] == "-roots" {
		pool, err := x509.SystemCertPool()
		if err != nil {
			panic(err)
		}
		own := 0
		for _, subject := range pool.Subjects() {
			if bytes.Contains(subject, []byte("capgate sandbox")) {
				own++
			}
		}
		fmt.Println(own)
		return
	}
	for _, port := range os.Args[1:] {
		connection, err := tls.Dial("tcp", "127.0.0.1:"+port, &tls.Config{ServerName: "localhost"})
		if err == nil {
			fmt.Fprint(connection, "GET / HTTP/1.0\r\n\r\n")
			connection.Read(make([]byte, 1))
			connection.Close()
		}
	}
}
