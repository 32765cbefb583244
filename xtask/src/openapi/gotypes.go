// Prints, for each kind named as group/version/Kind on the command line, what Go's decoder and
// encoder know about its type and everything below it, and what the published OpenAPI documents do
// not say: pointers, omitempty, numbers in protobuf, and the names of Go types that appear in error
// messages. With each kind goes an object with all of its fields, in both forms.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strings"
	"time"

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
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/util/intstr"
)

type field struct {
	Name     string `json:"name"`
	Type     string `json:"type"`
	Via      string `json:"via,omitempty"`
	Omit     string `json:"omit,omitempty"`
	MergeKey string `json:"mergeKey,omitempty"`
	Strategy string `json:"strategy,omitempty"`
	// Where protobuf has it: its number, behind those of the messages it is found through.
	Proto string `json:"proto,omitempty"`
}

type goType struct {
	Kind string `json:"kind"`
	Go   string `json:"go,omitempty"`
	Elem string `json:"elem,omitempty"`
	// Whether protobuf has a message of its own for the list.
	IsMessage bool    `json:"isMessage,omitempty"`
	Fields    []field `json:"fields,omitempty"`
}

type protoMarshaler interface{ Marshal() ([]byte, error) }

var (
	types       = map[string]goType{}
	unmarshaler = reflect.TypeOf((*json.Unmarshaler)(nil)).Elem()
	marshaler   = reflect.TypeOf((*protoMarshaler)(nil)).Elem()
)

func main() {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		apiextensionsv1.AddToScheme, appsv1.AddToScheme, authenticationv1.AddToScheme, authorizationv1.AddToScheme,
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
	samples := map[string]sample{}
	for _, arg := range os.Args[1:] {
		parts := strings.Split(arg, "/")
		gvk := schema.GroupVersionKind{Group: parts[0], Version: parts[1], Kind: parts[2]}
		object, err := scheme.New(gvk)
		if err != nil {
			panic(err)
		}
		kinds[arg] = walk(reflect.TypeOf(object).Elem())
		samples[arg] = sampleOf(scheme, gvk)
	}
	out, err := json.Marshal(map[string]any{"kinds": kinds, "types": types, "samples": samples})
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
		if strings.HasPrefix(t.Name(), "JSONSchemaPropsOr") {
			// Protobuf has a message for the alternatives, and schemas are in it.
			entry.Elem = walk(reflect.TypeOf(apiextensionsv1.JSONSchemaProps{}))
		}
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		entry.Kind = "bytes"
	case t.Kind() == reflect.Slice:
		entry.Kind, entry.Elem = "list", walk(t.Elem())
		entry.IsMessage = t.Implements(marshaler)
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
				embedded.Proto = within(number(f), embedded.Proto)
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
			Proto: number(f),
		})
	}
	return all
}

// sample is one object in both of its forms.
type sample struct {
	Protobuf []byte          `json:"protobuf"`
	JSON     json.RawMessage `json:"json"`
}

// sampleOf makes an object of a kind with every field set, down to some depth.
func sampleOf(scheme *runtime.Scheme, gvk schema.GroupVersionKind) sample {
	object, err := scheme.New(gvk)
	if err != nil {
		panic(err)
	}
	next := 0
	fill(reflect.ValueOf(object).Elem(), "", 6, &next)
	object.GetObjectKind().SetGroupVersionKind(gvk)
	var body bytes.Buffer
	if err := protobuf.NewSerializer(scheme, scheme).Encode(object, &body); err != nil {
		panic(err)
	}
	text, err := json.Marshal(object)
	if err != nil {
		panic(err)
	}
	return sample{Protobuf: body.Bytes(), JSON: text}
}

// fill sets a value and what is below it; numbers and times differ from each other.
func fill(v reflect.Value, name string, depth int, next *int) {
	*next++
	switch at := v.Addr().Interface().(type) {
	case *metav1.Time:
		at.Time = time.Unix(int64(1700000000+*next), 0).UTC()
		return
	case *metav1.MicroTime:
		at.Time = time.Unix(int64(1700000000+*next), 1000*int64(*next)).UTC()
		return
	case *resource.Quantity:
		*at = resource.MustParse(fmt.Sprintf("%dMi", *next))
		return
	case *intstr.IntOrString:
		*at = intstr.FromString(name)
		if *next%2 == 0 {
			*at = intstr.FromInt32(int32(*next))
		}
		return
	case *metav1.FieldsV1:
		at.Raw = []byte(`{"f:metadata":{}}`)
		return
	case *apiextensionsv1.JSON:
		at.Raw = []byte(fmt.Sprintf(`{"n":%d}`, *next))
		return
	case *apiextensionsv1.JSONSchemaPropsOrBool:
		at.Allows = true
		if depth > 0 {
			at.Schema = &apiextensionsv1.JSONSchemaProps{Type: name}
		}
		return
	case *apiextensionsv1.JSONSchemaPropsOrArray:
		at.Schema = &apiextensionsv1.JSONSchemaProps{Type: name}
		if *next%2 == 0 {
			at.Schema, at.JSONSchemas = nil, []apiextensionsv1.JSONSchemaProps{{Type: name}}
		}
		return
	case *apiextensionsv1.JSONSchemaPropsOrStringArray:
		at.Property = []string{name}
		if *next%2 == 0 {
			at.Property, at.Schema = nil, &apiextensionsv1.JSONSchemaProps{Type: name}
		}
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			// Schemas hold schemas: without an end of their own they would fill the sample.
			isDeep := v.Type() == reflect.TypeOf(apiextensionsv1.JSONSchemaProps{}) && depth < 2
			if f.IsExported() && f.Name != "TypeMeta" && !isDeep {
				fill(v.Field(i), f.Name, depth-1, next)
			}
		}
	case reflect.Pointer:
		if depth > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			fill(v.Elem(), name, depth, next)
		}
	case reflect.Slice:
		if depth > 0 {
			v.Set(reflect.MakeSlice(v.Type(), 2, 2))
			fill(v.Index(0), name, depth, next)
			fill(v.Index(1), name, 1, next)
		}
	case reflect.Map:
		if depth > 0 {
			v.Set(reflect.MakeMap(v.Type()))
			elem := reflect.New(v.Type().Elem()).Elem()
			fill(elem, name, depth, next)
			v.SetMapIndex(reflect.ValueOf(name).Convert(v.Type().Key()), elem)
		}
	case reflect.String:
		v.SetString(name)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Uint8:
		v.SetUint(uint64(*next % 256))
	case reflect.Float64:
		v.SetFloat(float64(*next) / 4)
	case reflect.Int32, reflect.Int64:
		v.SetInt(int64(*next))
		if *next%5 == 0 {
			v.SetInt(-int64(*next))
		}
	}
}

// number is the number of a field in protobuf: the second part of `varint,7,opt,name=x`.
func number(f reflect.StructField) string {
	parts := strings.Split(f.Tag.Get("protobuf"), ",")
	if len(parts) < 2 {
		return ""
	}
	return parts[1]
}

// within is where protobuf has a field of an embedded struct; nowhere when it does not know the
// struct, as it does not know TypeMeta.
func within(outer, inner string) string {
	if outer == "" || inner == "" {
		return ""
	}
	return outer + "." + inner
}
