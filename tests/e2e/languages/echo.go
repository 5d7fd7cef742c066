// Four goroutines on threads of their own talk to an echo service on the loopback interface; then a
// process is tried.
package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"sync/atomic"
)

const threads = 4

func serve(listener net.Listener) {
	for {
		connection, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			defer connection.Close()
			io.Copy(connection, connection)
		}()
	}
}

func talk(address string, text string) bool {
	runtime.LockOSThread()
	connection, err := net.Dial("tcp", address)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return false
	}
	defer connection.Close()
	fmt.Fprint(connection, text)
	connection.(*net.TCPConn).CloseWrite()
	answer, _ := io.ReadAll(connection)
	return string(answer) == text
}

func main() {
	if len(os.Args) > 1 { // the process that was tried
		return
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	go serve(listener)
	var echoed int32
	var all sync.WaitGroup
	for i := 0; i < threads; i++ {
		all.Add(1)
		go func(text string) {
			defer all.Done()
			if talk(listener.Addr().String(), text) {
				atomic.AddInt32(&echoed, 1)
			}
		}(fmt.Sprint(i))
	}
	all.Wait()
	started := 0
	if exec.Command(os.Args[0], "tried").Run() == nil {
		started = 1
	}
	fmt.Printf("echoed %d, started %d\n", echoed, started)
}
