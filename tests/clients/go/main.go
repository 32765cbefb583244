// A program that uses client-go as it comes: what it sees of a cluster, one line for each check.
// The numbers are those of the acceptance suite in the API server's specification.
package main

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync/atomic"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const namespace = "default"

// clients are all the ways to the cluster.
type clients struct {
	config   *rest.Config
	typed    kubernetes.Interface
	dynamic  dynamic.Interface
	metadata metadata.Interface
}

// How many bodies were sent as protobuf, and how many watches began with what there is.
var asProtobuf, streamed atomic.Int64

type counting struct{ next http.RoundTripper }

func (c counting) RoundTrip(request *http.Request) (*http.Response, error) {
	if strings.HasPrefix(request.Header.Get("Content-Type"), "application/vnd.kubernetes.protobuf") {
		asProtobuf.Add(1)
	}
	if request.URL.Query().Get("sendInitialEvents") == "true" {
		streamed.Add(1)
	}
	return c.next.RoundTrip(request)
}

func connect() (*clients, error) {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return nil, err
	}
	// The default is 5 requests in a second, which is for production.
	config.QPS, config.Burst = 500, 500
	counted := rest.CopyConfig(config)
	counted.Wrap(func(next http.RoundTripper) http.RoundTripper { return counting{next} })
	c := &clients{config: config}
	if c.typed, err = kubernetes.NewForConfig(counted); err != nil {
		return nil, err
	}
	if c.dynamic, err = dynamic.NewForConfig(config); err != nil {
		return nil, err
	}
	c.metadata, err = metadata.NewForConfig(config)
	return c, err
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == "inside" {
		if err := inside(); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		return
	}
	c, err := connect()
	if err != nil {
		fmt.Printf("FAIL\ta client\t%q\n", err.Error())
		os.Exit(1)
	}
	if len(os.Args) > 1 && os.Args[1] == "informers" {
		c.informers()
		end()
		return
	}
	c.server()
	c.objects()
	c.apply()
	c.rights()
	c.jobSets()
	c.definitions()
	c.fromInside()
	c.informers()
	c.leaders()
	c.commands()
	c.ports()
	c.deletions()
	check("65 bodies were protobuf", func() error {
		if asProtobuf.Load() < 10 {
			return fmt.Errorf("only %d of them", asProtobuf.Load())
		}
		return nil
	})
	end()
}
