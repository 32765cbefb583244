"""Who may do what."""

import copy

from kubernetes import client

from report import check, has, refused, same, until

NS = "rights"


def checks(core):
    """An account with a token, before and after it is given a role."""
    core.create_namespace({"metadata": {"name": NS}})
    core.create_namespaced_service_account(NS, {"metadata": {"name": "bot"}})
    request = client.AuthenticationV1TokenRequest(
        spec=client.V1TokenRequestSpec(audiences=[], expiration_seconds=600))
    made = check("62 a token", lambda: core.create_namespaced_service_account_token(
        "bot", NS, request))
    authentication = client.AuthenticationV1Api()
    review = client.V1TokenReview(spec=client.V1TokenReviewSpec(token=made.status.token))
    name = f"system:serviceaccount:{NS}:bot"
    check("62 a review of it", lambda: same(
        authentication.create_token_review(review).status.user.username, name))
    bot = client.CoreV1Api(client.ApiClient(with_token(made.status.token)))
    whoami = lambda: client.AuthenticationV1Api(bot.api_client).create_self_subject_review(
        client.V1SelfSubjectReview()).status.user_info
    check("62 who am I", lambda: same(whoami().username, name))
    check("62 my groups", lambda: has(whoami().groups, f"system:serviceaccounts:{NS}"))
    attributes = client.V1ResourceAttributes(verb="list", resource="pods", namespace=NS)
    question = client.V1SelfSubjectAccessReview(
        spec=client.V1SelfSubjectAccessReviewSpec(resource_attributes=attributes))
    may = lambda: client.AuthorizationV1Api(
        bot.api_client).create_self_subject_access_review(question).status.allowed
    check("62 may I", lambda: same(may(), False))
    check("62 no", lambda: refused(
        403, f'User \\"{name}\\" cannot list resource \\"pods\\"',
        lambda: bot.list_namespaced_pod(NS)))
    rbac = client.RbacAuthorizationV1Api()
    role = {"metadata": {"name": "reader"}, "rules": [
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}]}
    check("62 a role", lambda: rbac.create_namespaced_role(NS, role))
    binding = {"metadata": {"name": "reader"},
               "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role",
                           "name": "reader"},
               "subjects": [{"kind": "ServiceAccount", "name": "bot", "namespace": NS}]}
    check("62 is bound", lambda: rbac.create_namespaced_role_binding(NS, binding))
    check("62 now I may", lambda: until(may))
    check("62 and can", lambda: same(bot.list_namespaced_pod(NS).items, []))
    check("62 no more than that", lambda: refused(
        403, "cannot list resource", lambda: bot.list_namespaced_secret(NS)))
    check("62 clean up", lambda: core.delete_namespace(NS))


def strangers():
    """Those who are not let in."""
    for name, token in [("a wrong token", "wrong"), ("no token", None)]:
        stranger = client.CoreV1Api(client.ApiClient(with_token(token)))
        check(f"63 {name}", lambda: refused(
            401, "Unauthorized", lambda: stranger.list_namespaced_pod("default")))
    other = with_token("wrong")
    other.ssl_ca_cert = None
    def trusted():
        try:
            client.CoreV1Api(client.ApiClient(other)).list_namespaced_pod("default")
        except Exception as error:
            return has(error, "CERTIFICATE_VERIFY_FAILED")
        raise AssertionError("it was trusted")
    check("63 a server that nobody vouches for", trusted)


def with_token(token):
    """The configuration of the kubeconfig, with another token."""
    other = copy.copy(client.Configuration.get_default_copy())
    other.refresh_api_key_hook = None
    other.api_key = {"authorization": f"Bearer {token}"} if token else {}
    other.cert_file = other.key_file = None
    return other
