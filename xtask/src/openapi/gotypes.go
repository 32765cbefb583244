// Prints, for each kind named as group/version/Kind on the command line, what Go's decoder and
// encoder know about its type and everything below it, and what the published OpenAPI documents do
// not say: pointers, omitempty, and the names of Go types that appear in error messages.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

type field struct {
	Name     string `json:"name"`
	Type     string `json:"type"`
	Via      string `json:"via,omitempty"`
	Omit     string `json:"omit,omitempty"`
	MergeKey string `json:"mergeKey,omitempty"`
	Strategy string `json:"strategy,omitempty"`
}

type goType struct {
	Kind   string  `json:"kind"`
	Go     string  `json:"go,omitempty"`
	Elem   string  `json:"elem,omitempty"`
	Fields []field `json:"fields,omitempty"`
}

var (
	types       = map[string]goType{}
	unmarshaler = reflect.TypeOf((*json.Unmarshaler)(nil)).Elem()
)

func main() {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		appsv1.AddToScheme, authenticationv1.AddToScheme, authorizationv1.AddToScheme,
		autoscalingv1.AddToScheme, batchv1.AddToScheme, coordinationv1.AddToScheme,
		corev1.AddToScheme, discoveryv1.AddToScheme, eventsv1.AddToScheme, policyv1.AddToScheme,
		rbacv1.AddToScheme, schedulingv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			panic(err)
		}
	}
	scheme.AddKnownTypes(schema.GroupVersion{Group: "meta.k8s.io", Version: "v1"}, &metav1.Status{})
	kinds := map[string]string{}
	for _, arg := range os.Args[1:] {
		parts := strings.Split(arg, "/")
		gvk := schema.GroupVersionKind{Group: parts[0], Version: parts[1], Kind: parts[2]}
		object, err := scheme.New(gvk)
		if err != nil {
			panic(err)
		}
		kinds[arg] = walk(reflect.TypeOf(object).Elem())
	}
	out, err := json.Marshal(map[string]any{"kinds": kinds, "types": types})
	if err != nil {
		panic(err)
	}
	fmt.Println(string(out))
}

// key names a type: structs as the OpenAPI documents name them.
func key(t reflect.Type) string {
	if t.Name() != "" {
		if t.PkgPath() == "" {
			return t.Name()
		}
		path := strings.Split(t.PkgPath(), "/")
		domain := strings.Split(path[0], ".")
		for i, j := 0, len(domain)-1; i < j; i, j = i+1, j-1 {
			domain[i], domain[j] = domain[j], domain[i]
		}
		return strings.Join(append(domain, path[1:]...), ".") + "." + t.Name()
	}
	switch t.Kind() {
	case reflect.Pointer:
		return "*" + key(t.Elem())
	case reflect.Slice:
		return "[]" + key(t.Elem())
	case reflect.Map:
		return "map[" + key(t.Key()) + "]" + key(t.Elem())
	}
	panic("unnamed " + t.String())
}

func walk(t reflect.Type) string {
	name := key(t)
	if _, seen := types[name]; seen {
		return name
	}
	types[name] = goType{}
	entry := goType{Go: t.String()}
	switch {
	case t.Kind() == reflect.Pointer:
		entry.Kind, entry.Elem = "pointer", walk(t.Elem())
	case reflect.PointerTo(t).Implements(unmarshaler):
		entry.Kind = strings.ToLower(t.Name()[:1]) + t.Name()[1:]
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		entry.Kind = "bytes"
	case t.Kind() == reflect.Slice:
		entry.Kind, entry.Elem = "list", walk(t.Elem())
	case t.Kind() == reflect.Map:
		entry.Kind, entry.Elem = "map", walk(t.Elem())
	case t.Kind() == reflect.Struct:
		entry.Kind, entry.Fields = "struct", fields(t)
	default:
		entry.Kind = t.Kind().String()
	}
	if entry.Go == name {
		entry.Go = ""
	}
	types[name] = entry
	return name
}

func fields(t reflect.Type) []field {
	var all []field
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" || (!f.IsExported() && !f.Anonymous) {
			continue
		}
		if name == "" && f.Anonymous {
			inner := f.Type
			if inner.Kind() == reflect.Pointer {
				inner = inner.Elem()
			}
			// Error paths name the embedded structs a field was found through.
			for _, embedded := range fields(inner) {
				embedded.Via = strings.TrimSuffix(f.Name+"."+embedded.Via, ".")
				all = append(all, embedded)
			}
			continue
		}
		if name == "" {
			name = f.Name
		}
		omit := ""
		for option := range strings.SplitSeq(options, ",") {
			switch option {
			case "omitempty":
				omit += "empty"
			case "omitzero":
				omit += "zero"
			}
		}
		all = append(all, field{
			Name: name, Type: walk(f.Type), Omit: omit,
			MergeKey: f.Tag.Get("patchMergeKey"), Strategy: f.Tag.Get("patchStrategy"),
		})
	}
	return all
}
