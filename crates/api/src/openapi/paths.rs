//! The `paths` of a document: which requests there are and what they take.

use serde_json::{Map, Value, json};

use super::{REFERENCE, defined};
use crate::{
    resource::{Resource, Subresource, Text},
    schema,
};

/// Name, type and meaning of a query parameter.
type Parameter = (&'static str, &'static str, &'static str);

const DRY_RUN: Parameter =
    ("dryRun", "string", "With the value All, everything is done but storing the outcome.");
const FORCE: Parameter =
    ("force", "boolean", "Take fields from others who own them, when the patch is applied.");
const FIELD_MANAGER: Parameter =
    ("fieldManager", "string", "The name under which changes are recorded.");
const FIELD_VALIDATION: Parameter = (
    "fieldValidation",
    "string",
    "What happens to unknown or doubled fields: Ignore, Warn (the default) or Strict.",
);
const GRACE: Parameter =
    ("gracePeriodSeconds", "integer", "How long the object may take to end; 0 means at once.");
const PROPAGATION: Parameter = (
    "propagationPolicy",
    "string",
    "What happens to dependents: Orphan, Background or Foreground.",
);
const ORPHAN: Parameter =
    ("orphanDependents", "boolean", "Deprecated; propagationPolicy says the same.");
const CONTINUE: Parameter = ("continue", "string", "The token that a partial list ended with.");
const FIELD_SELECTOR: Parameter =
    ("fieldSelector", "string", "Restricts the list by the values of fields.");
const LABEL_SELECTOR: Parameter = ("labelSelector", "string", "Restricts the list by labels.");
const LIMIT: Parameter = ("limit", "integer", "The most objects to return in one answer.");
const RESOURCE_VERSION: Parameter =
    ("resourceVersion", "string", "How recent the answer must be, or where a watch starts.");
const VERSION_MATCH: Parameter =
    ("resourceVersionMatch", "string", "How resourceVersion is understood: Exact or NotOlderThan.");
const INITIAL_EVENTS: Parameter =
    ("sendInitialEvents", "boolean", "Begin the watch with what is there already.");
const TIMEOUT: Parameter = ("timeoutSeconds", "integer", "When the request ends at the latest.");
const WATCH: Parameter = ("watch", "boolean", "Stream changes instead of answering with a list.");
const BOOKMARKS: Parameter =
    ("allowWatchBookmarks", "boolean", "Ask for events that only tell how far the watch has come.");

const LIST: &[Parameter] = &[
    BOOKMARKS,
    CONTINUE,
    FIELD_SELECTOR,
    LABEL_SELECTOR,
    LIMIT,
    RESOURCE_VERSION,
    VERSION_MATCH,
    INITIAL_EVENTS,
    TIMEOUT,
    WATCH,
];
const WRITE: &[Parameter] = &[DRY_RUN, FIELD_MANAGER, FIELD_VALIDATION];
const PATCH: &[Parameter] = &[DRY_RUN, FIELD_MANAGER, FIELD_VALIDATION, FORCE];
const DELETE: &[Parameter] = &[DRY_RUN, GRACE, ORPHAN, PROPAGATION];
const DELETE_COLLECTION: &[Parameter] = &[
    CONTINUE,
    DRY_RUN,
    FIELD_SELECTOR,
    GRACE,
    LABEL_SELECTOR,
    LIMIT,
    ORPHAN,
    PROPAGATION,
    RESOURCE_VERSION,
    VERSION_MATCH,
    INITIAL_EVENTS,
    TIMEOUT,
];
const LOG: &[Parameter] = &[
    ("container", "string", "Which container; needed when there is more than one."),
    ("follow", "boolean", "Stream what is written from now on."),
    ("limitBytes", "integer", "The most bytes to return."),
    ("previous", "boolean", "The log of the container's life before the last restart."),
    ("sinceSeconds", "integer", "How far back to begin."),
    ("stream", "string", "All, Stdout or Stderr."),
    ("tailLines", "integer", "How many lines from the end to begin with."),
    ("timestamps", "boolean", "Put the moment of writing before each line."),
];

const ATTACH: &[Parameter] = &[
    ("container", "string", "Which container; needed when there is more than one."),
    ("stderr", "boolean", "See its standard error."),
    ("stdin", "boolean", "Write to its standard input."),
    ("stdout", "boolean", "See its standard output."),
    ("tty", "boolean", "Whether the process has a terminal."),
];
const COMMAND: Parameter = ("command", "string", "The program and its arguments, one by one.");
const PORTS: Parameter = ("ports", "integer", "The ports to be connected to.");

const DELETE_OPTIONS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";
const PATCH_BODY: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Patch";
const STATUS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Status";

/// The paths of the resources of one group and version.
pub(super) fn of(served: &[&Resource]) -> Value {
    let mut paths = Map::new();
    for resource in served {
        add_resource(resource, &mut paths);
    }
    Value::Object(paths)
}

fn add_resource(resource: &Resource, paths: &mut Map<String, Value>) {
    let operations = Operations::of(resource);
    let root = match &*resource.group {
        "" => format!("/api/{}", resource.version),
        group => format!("/apis/{group}/{}", resource.version),
    };
    let plural = &resource.plural;
    let (collection, scope) = if resource.is_namespaced() {
        (format!("{root}/namespaces/{{namespace}}/{plural}"), "Namespaced")
    } else {
        (format!("{root}/{plural}"), "")
    };
    let named = |path: &str, item: Map<String, Value>| {
        let mut item = item;
        let given = |name: &&str| path.contains(&format!("{{{name}}}"));
        let parameters = ["name", "namespace"].into_iter().filter(given).map(|name| {
            json!({"in": "path", "name": name, "required": true,
                   "description": format!("{name} of the {}", resource.kind),
                   "schema": {"type": "string", "uniqueItems": true}})
        });
        item.insert("parameters".to_owned(), parameters.collect());
        Value::Object(item)
    };
    let mut add = |path: String, item: Map<String, Value>| {
        if !item.is_empty() {
            let item = named(&path, item);
            paths.insert(path, item);
        }
    };
    if resource.is_namespaced() && resource.verbs.contains(&"list") {
        let mut everywhere = Map::new();
        let list = operations.list("", "ForAllNamespaces");
        everywhere.insert("get".to_owned(), list);
        add(format!("{root}/{plural}"), everywhere);
    }
    add(collection.clone(), operations.on_collection(scope));
    add(format!("{collection}/{{name}}"), operations.on_object(scope));
    for sub in &resource.subresources {
        add(format!("{collection}/{{name}}/{}", sub.name), operations.below(sub, scope));
    }
}

/// Makes the operations of one resource.
struct Operations<'a> {
    resource: &'a Resource,
    schema: Option<String>,
}

impl<'a> Operations<'a> {
    fn of(resource: &'a Resource) -> Self {
        Self { resource, schema: defined::name(resource) }
    }

    fn on_collection(&self, scope: &str) -> Map<String, Value> {
        let mut item = Map::new();
        let verbs = self.resource.verbs;
        if verbs.contains(&"list") {
            item.insert("get".to_owned(), self.list(scope, ""));
        }
        if verbs.contains(&"create") {
            let mut create = self.operation("create", "post", scope, "", WRITE);
            create["requestBody"] = body("*/*", self.schema.as_deref());
            create["responses"] = responses(&["200", "201", "202"], self.schema.as_deref());
            item.insert("post".to_owned(), create);
        }
        if verbs.contains(&"deletecollection") {
            let scope = format!("Collection{scope}");
            let mut delete =
                self.operation("delete", "deletecollection", &scope, "", DELETE_COLLECTION);
            delete["requestBody"] = body("*/*", Some(DELETE_OPTIONS));
            delete["responses"] = responses(&["200"], Some(STATUS));
            item.insert("delete".to_owned(), delete);
        }
        item
    }

    fn on_object(&self, scope: &str) -> Map<String, Value> {
        let mut item = self.read_and_write(self.resource.verbs, scope, "", self.schema.as_deref());
        if self.resource.verbs.contains(&"delete") {
            let mut delete = self.operation("delete", "delete", scope, "", DELETE);
            let answer = match self.resource.strategy.delete_returns_object() {
                true => self.schema.as_deref(),
                false => Some(STATUS),
            };
            delete["requestBody"] = body("*/*", Some(DELETE_OPTIONS));
            delete["responses"] = responses(&["200", "202"], answer);
            item.insert("delete".to_owned(), delete);
        }
        item
    }

    fn below(&self, sub: &Subresource, scope: &str) -> Map<String, Value> {
        let suffix = capitalized(&sub.name);
        if sub.name == "log" {
            let mut read = self.operation("read", "get", scope, &suffix, LOG);
            read["responses"] = json!({"200": {"description": "OK", "content": {
                "text/plain": {"schema": {"type": "string"}}}}});
            return Map::from_iter([("get".to_owned(), read)]);
        }
        let connection = match &*sub.name {
            "attach" => Some(ATTACH.to_vec()),
            "exec" => Some([ATTACH, &[COMMAND]].concat()),
            "portforward" => Some(vec![PORTS]),
            _ => None,
        };
        if let Some((parameters, kind)) = connection.zip(sub.kind.as_ref()) {
            return self.connect(kind, scope, &suffix, &parameters);
        }
        let schema = match &sub.kind {
            Some((group, version, kind)) => schema::name_of(group, version, kind),
            None => self.schema.as_deref(),
        };
        let mut item = self.read_and_write(sub.verbs, scope, &suffix, schema);
        if sub.verbs.contains(&"create") {
            let mut create = self.operation("create", "post", scope, &suffix, WRITE);
            create["requestBody"] = body("*/*", schema);
            create["responses"] = responses(&["200", "201", "202"], schema);
            item.insert("post".to_owned(), create);
        }
        if let Some((group, version, kind)) = &sub.kind {
            for operation in item.values_mut() {
                operation["x-kubernetes-group-version-kind"] =
                    json!({"group": group, "version": version, "kind": kind});
            }
        }
        item
    }

    /// What is opened: the answer is whatever comes then.
    fn connect(
        &self,
        (group, version, kind): &(Text, Text, Text),
        scope: &str,
        suffix: &str,
        parameters: &[Parameter],
    ) -> Map<String, Value> {
        let methods = ["get", "post"].map(|method| {
            let scope = format!("{}{scope}", capitalized(method));
            let mut open = self.operation("connect", "connect", &scope, suffix, parameters);
            open["responses"] = json!({"200": {"description": "OK", "content": {
                "*/*": {"schema": {"type": "string"}}}}});
            open["x-kubernetes-group-version-kind"] =
                json!({"group": group, "version": version, "kind": kind});
            (method.to_owned(), open)
        });
        Map::from_iter(methods)
    }

    fn read_and_write(
        &self,
        verbs: &[&str],
        scope: &str,
        suffix: &str,
        schema: Option<&str>,
    ) -> Map<String, Value> {
        let mut item = Map::new();
        if verbs.contains(&"get") {
            let mut read = self.operation("read", "get", scope, suffix, &[]);
            read["responses"] = responses(&["200"], schema);
            item.insert("get".to_owned(), read);
        }
        if verbs.contains(&"update") {
            let mut replace = self.operation("replace", "put", scope, suffix, WRITE);
            replace["requestBody"] = body("*/*", schema);
            replace["responses"] = responses(&["200", "201"], schema);
            item.insert("put".to_owned(), replace);
        }
        if verbs.contains(&"patch") {
            let mut patch = self.operation("patch", "patch", scope, suffix, PATCH);
            // By this kubectl decides how it says what has changed.
            let strategic = self.resource.takes_strategic_patches();
            let strategic = strategic.then_some("application/strategic-merge-patch+json");
            let media = [
                "application/apply-patch+yaml",
                "application/json-patch+json",
                "application/merge-patch+json",
            ];
            let content: Map<String, Value> = media
                .into_iter()
                .chain(strategic)
                .map(|media| (media.to_owned(), json!({"schema": reference(Some(PATCH_BODY))})))
                .collect();
            patch["requestBody"] = json!({"content": content, "required": true});
            patch["responses"] = responses(&["200", "201"], schema);
            item.insert("patch".to_owned(), patch);
        }
        item
    }

    fn list(&self, scope: &str, suffix: &str) -> Value {
        let mut list = self.operation("list", "list", scope, suffix, LIST);
        let schema = defined::list_name(self.resource);
        list["responses"] = responses(&["200"], schema.as_deref());
        list
    }

    fn operation(
        &self,
        verb: &str,
        action: &str,
        scope: &str,
        suffix: &str,
        parameters: &[Parameter],
    ) -> Value {
        let Resource { group, version, kind, .. } = self.resource;
        let family = match group.split('.').next() {
            None | Some("") => "core",
            Some(group) => group,
        };
        let (family_name, version_name) = (capitalized(family), capitalized(version));
        let parameters: Vec<Value> = parameters
            .iter()
            .map(|(name, kind, description)| {
                json!({"in": "query", "name": name, "description": description,
                       "schema": {"type": kind, "uniqueItems": true}})
            })
            .collect();
        json!({
            "operationId": format!("{verb}{family_name}{version_name}{scope}{kind}{suffix}"),
            "tags": [format!("{family}_{version}")],
            "parameters": parameters,
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind":
                {"group": group, "version": version, "kind": kind},
        })
    }
}

fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters
        .next()
        .map(|first| first.to_ascii_uppercase().to_string() + letters.as_str())
        .unwrap_or_default()
}

fn body(media: &str, schema: Option<&str>) -> Value {
    json!({"content": {media: {"schema": reference(schema)}}})
}

fn responses(codes: &[&str], schema: Option<&str>) -> Value {
    let mut responses: Map<String, Value> = codes
        .iter()
        .map(|code| {
            let description = match *code {
                "201" => "Created",
                "202" => "Accepted",
                _ => "OK",
            };
            let content = json!({"application/json": {"schema": reference(schema)}});
            ((*code).to_owned(), json!({"description": description, "content": content}))
        })
        .collect();
    responses.insert("401".to_owned(), json!({"description": "Unauthorized"}));
    Value::Object(responses)
}

fn reference(schema: Option<&str>) -> Value {
    match schema {
        Some(name) => json!({"$ref": format!("{REFERENCE}{name}")}),
        None => json!({"type": "object"}),
    }
}
