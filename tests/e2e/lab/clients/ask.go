// ask URL...: asks with the token of the environment, and prints a line of JSON for each URL.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
)

func ask(url string) map[string]any {
	request, err := http.NewRequest("GET", url, nil)
	if err != nil {
		return map[string]any{"error": err.Error()}
	}
	request.Header.Set("Authorization", "Bearer "+os.Getenv("TOKEN"))
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return map[string]any{"error": err.Error()}
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return map[string]any{"error": err.Error()}
	}
	return map[string]any{"status": response.StatusCode, "body": string(body), "by": response.Proto}
}

func main() {
	for _, url := range os.Args[1:] {
		line, _ := json.Marshal(ask(url))
		fmt.Println(string(line))
	}
}
