package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/util/exec"
)

// echo is a server that says what it was told.
const echo = `
import os, socket, threading
def serve(c):
    while True:
        b = c.recv(65536)
        if not b: break
        c.sendall(b)
    c.close()
s = socket.create_server((os.environ['IP'], 7722))
while True: threading.Thread(target=serve, args=s.accept()[:1]).start()
`

func (c *clients) started(wanted *corev1.Pod, phase corev1.PodPhase) error {
	pods := c.typed.CoreV1().Pods(namespace)
	if _, err := pods.Create(background, wanted, nothing); err != nil {
		return err
	}
	return until(func() error {
		got, err := pods.Get(background, wanted.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		return same(got.Status.Phase, phase)
	})
}

// commands run in a pod, over WebSockets; logs are read.
func (c *clients) commands() {
	check("47 logs", func() error {
		if err := c.started(pod("go-said", "echo one; echo two"), corev1.PodSucceeded); err != nil {
			return err
		}
		pods := c.typed.CoreV1().Pods(namespace)
		tail := int64(1)
		for _, one := range []struct {
			options corev1.PodLogOptions
			want    string
		}{
			{corev1.PodLogOptions{}, "one\ntwo\n"},
			{corev1.PodLogOptions{TailLines: &tail}, "two\n"},
			{corev1.PodLogOptions{Follow: true}, "one\ntwo\n"},
		} {
			stream, err := pods.GetLogs("go-said", &one.options).Stream(background)
			if err != nil {
				return err
			}
			said, err := io.ReadAll(stream)
			if err != nil {
				return err
			}
			if err := same(string(said), one.want); err != nil {
				return err
			}
		}
		return nil
	})
	check("65 a pod to work in", func() error {
		script := "trap 'exit 0' TERM; while :; do sleep 0.1; done"
		return c.started(pod("go-shell", script), corev1.PodRunning)
	})
	check("65 exec: streams", func() error {
		out, errs, err := c.exec("", "sh", "-c", "echo out; echo err >&2")
		if err != nil {
			return err
		}
		return same(out+errs, "out\nerr\n")
	})
	check("65 exec: the code", func() error {
		_, _, err := c.exec("", "sh", "-c", "exit 7")
		var code exec.CodeExitError
		if !errors.As(err, &code) {
			return fmt.Errorf("no code: %v", err)
		}
		return same(code.Code, 7)
	})
	check("65 exec: a megabyte there and back", func() error {
		sent := strings.Repeat("0123456789abcdef", 1<<16)
		out, _, err := c.exec(sent, "cat")
		if err != nil {
			return err
		}
		return same(out == sent, true)
	})
	check("65 exec: no such program", func() error {
		_, _, err := c.exec("", "no-such-program")
		if err == nil {
			return errors.New("it ran")
		}
		return has(err.Error(), "executable file not found")
	})
	check("65 exec: nobody there", func() error {
		_, _, err := c.in("nobody", "", "date")
		if err == nil {
			return errors.New("it ran")
		}
		return has(err.Error(), "not found")
	})
}

func (c *clients) exec(input string, command ...string) (string, string, error) {
	return c.in("go-shell", input, command...)
}

func (c *clients) in(name, input string, command ...string) (string, string, error) {
	options := &corev1.PodExecOptions{
		Command: command, Stdin: input != "", Stdout: true, Stderr: true, Container: "main",
	}
	url := c.typed.CoreV1().RESTClient().Get().Resource("pods").Namespace(namespace).Name(name).
		SubResource("exec").VersionedParams(options, scheme.ParameterCodec).URL()
	executor, err := remotecommand.NewWebSocketExecutor(c.config, "GET", url.String())
	if err != nil {
		return "", "", err
	}
	ctx, cancel := context.WithTimeout(background, 30*time.Second)
	defer cancel()
	var out, errs bytes.Buffer
	streams := remotecommand.StreamOptions{Stdout: &out, Stderr: &errs}
	if input != "" {
		streams.Stdin = strings.NewReader(input)
	}
	err = executor.StreamWithContext(ctx, streams)
	return out.String(), errs.String(), err
}

// ports of a pod are reached through the API.
func (c *clients) ports() {
	check("65 a server", func() error {
		server := pod("go-server", `exec python3 -c "$ECHO"`)
		address := &corev1.EnvVarSource{
			FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.podIP"},
		}
		server.Spec.Containers[0].Env = []corev1.EnvVar{
			{Name: "ECHO", Value: echo}, {Name: "IP", ValueFrom: address},
		}
		listens := corev1.ProbeHandler{
			TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(7722)},
		}
		server.Spec.Containers[0].ReadinessProbe = &corev1.Probe{
			ProbeHandler: listens, PeriodSeconds: 1,
		}
		if err := c.started(server, corev1.PodRunning); err != nil {
			return err
		}
		return until(func() error {
			got, err := c.typed.CoreV1().Pods(namespace).
				Get(background, server.Name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			return same(got.Status.ContainerStatuses[0].Ready, true)
		})
	})
	check("65 port-forward", func() error {
		url := c.typed.CoreV1().RESTClient().Post().Resource("pods").Namespace(namespace).
			Name("go-server").SubResource("portforward").URL()
		dialer, err := portforward.NewSPDYOverWebsocketDialer(url, rest.CopyConfig(c.config))
		if err != nil {
			return err
		}
		stop, ready := make(chan struct{}), make(chan struct{})
		forwarder, err := portforward.New(
			dialer, []string{"0:7722"}, stop, ready, io.Discard, io.Discard)
		if err != nil {
			return err
		}
		ended := make(chan error, 1)
		go func() { ended <- forwarder.ForwardPorts() }()
		select {
		case err := <-ended:
			return fmt.Errorf("it ended: %w", err)
		case <-time.After(20 * time.Second):
			return errors.New("it was not ready")
		case <-ready:
		}
		defer close(stop)
		ports, err := forwarder.GetPorts()
		if err != nil {
			return err
		}
		return echoed(ports[0].Local)
	})
}

func echoed(port uint16) error {
	connection, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return err
	}
	defer connection.Close()
	if err := connection.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		return err
	}
	sent := bytes.Repeat([]byte("0123456789abcdef"), 1<<14)
	go func() { _, _ = connection.Write(sent) }()
	back := make([]byte, len(sent))
	if _, err := io.ReadFull(connection, back); err != nil {
		return err
	}
	return same(bytes.Equal(sent, back), true)
}
