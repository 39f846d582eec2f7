#!/bin/sh
# @modelcontextprotocol/client 2.4.0: whether the address for device codes survives depends on where the issuer's
# description was found.
#
# Expected: discoverAuthorizationServerMetadata returns `device_authorization_endpoint` (RFC 8628), as it returns other
#   fields that it does not use, whether the issuer describes itself as an OAuth server (RFC 8414) or by OpenID.
# Seen: from /.well-known/oauth-authorization-server the field is returned. From /.well-known/openid-configuration the
#   same description comes back without it. A client that offers a login by code then finds none at an OpenID issuer.
#
# Needs node 20 or newer and npm. Ends with 0 while it is so, and with 1 when it is not.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
npm i --silent --no-audit --no-fund @modelcontextprotocol/client@2.4.0
cat > look.mjs <<'JS'
import { discoverAuthorizationServerMetadata } from "@modelcontextprotocol/client"

const issuer = "https://issuer.example.org"
const description = {
  issuer,
  authorization_endpoint: `${issuer}/authorize`,
  token_endpoint: `${issuer}/token`,
  jwks_uri: `${issuer}/keys`,
  response_types_supported: ["code"],
  subject_types_supported: ["public"],
  id_token_signing_alg_values_supported: ["RS256"],
  device_authorization_endpoint: `${issuer}/device`
}
const found = (name) =>
  discoverAuthorizationServerMetadata(issuer, {
    fetchFn: async (url) =>
      String(url) === `${issuer}/.well-known/${name}` ? Response.json(description) : new Response("", { status: 404 })
  })
const oauth = (await found("oauth-authorization-server"))?.device_authorization_endpoint
const openid = (await found("openid-configuration"))?.device_authorization_endpoint
console.log(`oauth-authorization-server: ${oauth}`)
console.log(`openid-configuration: ${openid}`)
process.exit(oauth === description.device_authorization_endpoint && openid === undefined ? 0 : 1)
JS
node look.mjs
