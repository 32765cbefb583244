package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

var failed bool

// check runs one check and prints the line that xtask counts.
func check(name string, action func() error) {
	err := action()
	if err == nil {
		fmt.Printf("ok\t%s\n", name)
		return
	}
	failed = true
	fmt.Printf("FAIL\t%s\t%q\n", name, err.Error())
}

// end prints the last line, without which nobody knows whether there would have been more.
func end() {
	fmt.Println("done")
	if failed {
		os.Exit(1)
	}
}

func same[T comparable](got, want T) error {
	if got != want {
		return fmt.Errorf("%v instead of %v", got, want)
	}
	return nil
}

func has(text, part string) error {
	if !strings.Contains(text, part) {
		return fmt.Errorf("no %q in %q", part, text)
	}
	return nil
}

// refused wants an error of the server with this code and these words.
func refused(err error, code int32, part string) error {
	status, is := err.(apierrors.APIStatus)
	if !is {
		return fmt.Errorf("it was not refused: %v", err)
	}
	if status.Status().Code != code {
		return fmt.Errorf("code %d instead of %d: %w", status.Status().Code, code, err)
	}
	return has(err.Error(), part)
}

// until asks again and again; the last problem is the one that counts.
func until(action func() error) error {
	deadline := time.Now().Add(30 * time.Second)
	for {
		err := action()
		if err == nil || time.Now().After(deadline) {
			return err
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func within(seconds time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), seconds*time.Second)
}
