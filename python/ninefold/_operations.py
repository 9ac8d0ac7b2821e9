# Written by `bun codegen/main.ts` from test/golden/openapi.json. Change the schemas of the areas instead.
"""What is special about some operations."""

from __future__ import annotations

from typing import Dict, Tuple

#: Operations with another rule for repeats (free: always, keyed: with an Idempotency-Key, never: only what was certainly
#: not carried out), and whether they take a key.
UNUSUAL: Dict[str, Tuple[str, bool]] = {
    "POST /v1/in/{bucket_id}": ("never", False),
    "POST /v1/catch/{bucket_id}": ("never", False),
    "POST /v1/gate/{flagKey}/preview": ("free", True),
    "POST /v1/keys/verify": ("free", True),
    "POST /v1/latch/{key}/acquire": ("free", True),
    "GET /alerts/{token}": ("free", False),
    "POST /alerts/{token}": ("never", False),
    "POST /ping/{check}": ("never", False),
    "GET /api/push/{token}": ("free", False),
    "POST /ofrep/v1/evaluate/flags": ("free", True),
    "POST /ofrep/v1/evaluate/flags/{key}": ("free", True),
    "GET /ofrep/v1/events": ("free", False),
    "GET /openapi.json": ("free", False),
    "POST /v1/people/me/passkeys": ("free", True),
    "POST /v1/people/me/passkeys/options": ("free", True),
    "GET /v1/ping": ("free", False),
    "POST /v1/probe/results": ("never", False),
    "GET /v1/probe/work": ("free", False),
    "POST /v1/relay/portal/deliveries/{relay_id}/resend": ("free", True),
    "PATCH /v1/relay/portal/endpoints/{endpoint_id}": ("free", True),
    "POST /v1/relay/portal/endpoints": ("free", True),
    "DELETE /v1/relay/portal/endpoints/{endpoint_id}": ("free", True),
    "POST /v1/relay/portal/endpoints/{endpoint_id}/recover": ("free", True),
    "POST /v1/relay/portal/endpoints/{endpoint_id}/secret": ("free", True),
    "POST /v1/relay/portal/endpoints/{endpoint_id}/secret/rotate": ("free", True),
    "POST /v1/relay/portal/endpoints/{endpoint_id}/test": ("free", True),
    "DELETE /v1/relay/portal/resends/{resend_id}": ("free", True),
    "POST /v1/session": ("never", False),
    "POST /v1/session/email": ("never", False),
    "DELETE /v1/session": ("free", True),
    "POST /v1/session/invitation/accept": ("never", False),
    "POST /v1/session/invitation": ("never", False),
    "POST /v1/session/passkey": ("never", False),
    "POST /v1/session/passkey/options": ("never", False),
    "GET /v1/session": ("free", False),
    "POST /v1/session/account": ("never", False),
    "POST /v1/signup": ("never", False),
    "GET /status/{page}/badge/{badge}": ("free", False),
    "GET /status/{page}/maintenance.ics": ("free", False),
    "GET /status/{page}/feed.atom": ("free", False),
    "GET /status/{page}/groups/{group}": ("free", False),
    "GET /status/{page}/groups/{group}/badge.svg": ("free", False),
    "GET /status/{page}/groups/{group}/badge.json": ("free", False),
    "GET /status/{page}/icon": ("free", False),
    "GET /status/{page}/incidents/{incident}": ("free", False),
    "GET /status/{page}": ("free", False),
    "GET /status/{page}/badge.svg": ("free", False),
    "GET /status/{page}/badge.json": ("free", False),
    "POST /status/{page}/subscribe": ("never", False),
    "GET /status/{page}/subscribe": ("free", False),
    "GET /status/{page}/subscription": ("free", False),
    "POST /status/{page}/subscription": ("never", False),
    "POST /v1/witness/peer/add-checkpoint": ("never", False),
    "GET /v1/witness/peer/{origin}/checkpoint": ("free", False),
    "GET /v1/witness/peer": ("free", False),
    "GET /v1/witness/pubkey/{chainId}": ("free", False),
    "GET /v1/witness/tlog/{chainId}/checkpoint": ("free", False),
    "GET /v1/witness/tlog/{chainId}/tile/{tile}": ("free", False),
    "POST /v1/witness/verify": ("free", True),
}

#: Timeouts of operations that may take longer than the default, in seconds.
SLOW: Dict[str, float] = {
    "POST /v1/admin/clock": 290.0,
    "DELETE /v1/catch/{bucket_id}/events": 120.0,
    "POST /v1/catch/{bucket_id}/events/{event_id}/replay": 60.0,
    "GET /v1/catch/{bucket_id}/stream": 90.0,
    "POST /v1/pulse/{monitorId}/check": 120.0,
}
