/**
 * The client's objects by their paths below `nf`: class and description. An object without a row is named after its path.
 * `AllMeters` and `Meter` divide one area: see {@link BOUND}.
 */
export const OBJECTS: Readonly<Record<string, readonly [className: string, description: string]>> = {
  "": ["Ninefold", "A client."],
  account: ["Account", "The account of the key: credits, platform key and browser sessions."],
  meter: ["Meter", "The meter of one of your customers."],
  allMeters: ["AllMeters", "All meters of the project: their usage and alert."],
  projects: [
    "Projects",
    "Projects. A client works in the project of its key: create one with {@link Projects.createKey}.",
  ],
  keys: ["Keys", "Managed keys, for parts of your system or for your customers."],
  flags: ["Flags", "Feature flags."],
  locks: ["Locks", "Distributed locks. {@link Ninefold.withLock} runs a function while holding one."],
  monitors: ["Monitors", "Scheduled checks of URLs, and heartbeats that expect pings."],
  "monitors.incidents": ["MonitorIncidents", "Incidents, opened by monitors or manually."],
  "monitors.channels": ["MonitorChannels", "Notification channels."],
  "monitors.maintenance": [
    "MonitorMaintenance",
    "Maintenance windows, in which alerts of their monitors are suppressed.",
  ],
  "monitors.pages": ["StatusPages", "Status pages, visible to anyone at the `url` of the page."],
  relay: ["Relay", "Signed webhooks: scheduled deliveries, and messages to subscribed endpoints."],
  "relay.endpoints": ["RelayEndpoints", "Webhook endpoints."],
  "relay.messages": ["RelayMessages", "Messages to all subscribed endpoints."],
  "relay.portal": ["RelayPortal", "Links by which your customers manage their own endpoints."],
  "relay.portal.endpoints": [
    "PortalEndpoints",
    "The endpoints of a customer, for a client whose key is the token of a portal link.",
  ],
  "relay.portal.endpoints.secret": [
    "PortalSecret",
    "The signing secret of an endpoint, for a client whose key is the token of a portal link.",
  ],
  "relay.portal.deliveries": [
    "PortalDeliveries",
    "The deliveries of a customer, for a client whose key is the token of a portal link.",
  ],
  "relay.schedules": ["RelaySchedules", "Recurring webhooks, by cron expression."],
  catch: ["Catch", "Buckets that receive webhooks."],
  "catch.buckets": ["Buckets", "The buckets of a project."],
  "catch.events": ["Events", "The events of buckets."],
  "catch.replays": ["Replays", "Replays of many events."],
  notary: ["Notary", "A chain of signed receipts."],
  "notary.receipts": ["Receipts", "The receipts of the chain of the project."],
  "notary.peer": ["WitnessPeer", "The server as a witness for chains of others."],
  "notary.witnesses": ["ChainWitnesses", "The witnesses of the chain of the project."],
  "notary.storage": ["Storage", "The storage that receipts are copied to."],
  audit: ["Audit", "The audit log of the account, or of the project of the key."],
  admin: ["Admin", "The operator's API and the test clock."],
  "admin.accounts": ["AdminAccounts", "All accounts, for the operator."],
  "admin.audit": ["AdminAudit", "The audit log of all accounts and of the server, for the operator."],
  "admin.backups": ["AdminBackups", "The server's backups, for the operator."],
  "admin.settings": ["AdminSettings", "Settings of the server in its database, for the operator."],
};

/** Areas of the API whose object has another name. */
export const AREAS: Readonly<Record<string, string>> = {
  gate: "flags",
  latch: "locks",
  meter: "allMeters",
  ofrep: "flags",
  witness: "notary",
};

/** An object of the client that stands for one resource: the path parameter that its property `id` replaces. */
export const BOUND: Readonly<Record<string, string>> = { meter: "meterId" };

/** Last words of operations whose method has another name. */
export const VERBS: Readonly<Record<string, string>> = { read: "get", change: "update" };

/**
 * Published methods whose name or arguments differ from what their operation's name says: `object.method`, where the
 * arguments differ followed by their names in the API. A name that is no path parameter is a field of the body; `body?` may be
 * omitted.
 */
export const PUBLISHED: Readonly<Record<string, string>> = {
  "admin.clock.advance": "admin.advanceClock(advance_ms)",
  "admin.clock.read": "admin.clock",
  "admin.history.read": "admin.history",
  "admin.login_links.create": "admin.createLoginLink(body?)",
  "admin.options.list": "admin.options",
  "admin.settings.test_mail": "admin.settings.testMail(to)",
  "admin.status.read": "admin.status",
  "catch.events.ack": "catch.events.acknowledge",
  "catch.stream": "catch.events.stream",
  "keys.platform.reset": "admin.accounts.resetKey",
  "keys.revoke_owned": "keys.revokeOwned(owner_id)",
  "keys.rotate": "keys.rotate(id, body?)",
  "latch.extend": "locks.extend(key, token, ttl)",
  "latch.force": "locks.forceRelease(key, fencing_token)",
  "latch.release": "locks.release(key, token)",
  "meter.alert.project.delete": "allMeters.deleteAlert",
  "meter.alert.project.read": "allMeters.alert",
  "meter.alert.project.set": "allMeters.setAlert",
  "meter.alert.read": "meter.alert",
  "meter.deduct": "meter.deduct(amount)",
  "meter.holds.capture": "meter.capture(hold_id, body?)",
  "meter.holds.create": "meter.hold",
  "meter.holds.extend": "meter.extend(hold_id, ttl_seconds)",
  "meter.holds.list": "meter.holds",
  "meter.holds.read": "meter.getHold",
  "meter.holds.release": "meter.release",
  "meter.list": "meters",
  "meter.own.balance": "account.balance",
  "meter.own.deduct": "account.deduct(amount)",
  "meter.own.history": "account.history",
  "meter.own.refill": "account.refill(amount)",
  "meter.plan.read": "meter.plan",
  "meter.refill": "meter.refill(amount)",
  "meter.reset": "meter.reset(balance)",
  "meter.usage.project": "allMeters.usage",
  "monitors.incidents.update": "monitors.incidents.say",
  "monitors.ping_key": "monitors.renewPingKey",
  "ofrep.bulk": "flags.resolveAll(context)",
  "ofrep.evaluate": "flags.resolve(key, context)",
  "openapi.read": "openApi",
  "overview.read": "overview",
  "projects.keys.create": "projects.createKey",
  "relay.endpoints.secret.rotate": "relay.endpoints.rotateSecret",
  "relay.messages.batch": "relay.messages.sendMany(messages)",
  "relay.portal.resends.read": "relay.portal.resendProgress",
  "relay.portal.resends.stop": "relay.portal.stopResend",
  "relay.resends.read": "relay.resendProgress",
  "relay.resends.start": "relay.resendFailed",
  "relay.resends.stop": "relay.stopResend",
  "relay.secret.reveal": "relay.secret",
  "relay.secret.rotate": "relay.rotateSecret",
  "sessions.end": "account.endSessions",
  "witness.accept_fork": "notary.acceptFork(chain_id)",
  "witness.config.read": "notary.storage.get",
  "witness.config.set": "notary.storage.configure",
  "witness.init": "notary.init(body?)",
  "witness.log": "notary.log(log)",
  "witness.proofs.consistency": "notary.consistencyProof",
  "witness.proofs.inclusion": "notary.inclusionProof",
  "witness.tlog.set": "notary.publish",
  "witness.pubkey": "notary.publicKey",
  "witness.verify": "notary.verify(receipt)",
};

/** Methods that do more than send their operation's request. They are written in `src/client/areas/`, in a class that extends the generated one. */
export const WRITTEN: Readonly<Record<string, string>> = {
  "catch.buckets.list": "catch.buckets.list({ name })",
  "catch.events.delete": "catch.events.deleteBefore(bucketId, before)",
  "catch.events.export": "catch.events.export(bucketId, query?)",
  "catch.events.raw": "catch.events.raw(bucketId, eventId)",
  "catch.in": "catch.sendIn(bucketId, body, { below, headers })",
  "catch.ingest": "catch.send(bucketId, body, { headers })",
  "gate.config": "flags.config({ full, tag, archived })",
  "gate.list": "flags.list()",
  "keys.platform.rotate": "account.rotateKey({ graceHours })",
  "keys.verify": "keys.verify(secret, { ip, userAgent, require, cost, ratelimits })",
  "latch.acquire": "locks.acquire(key, { ttlMs, waitMs, mode, token })",
  "witness.bundle": "notary.receipts.bundle(sequenceId)",
  "witness.checkpoint": "notary.checkpoint()",
  "witness.export": "notary.export(query?)",
  "monitors.ping": "monitors.ping(pingUrl, { says, rid, body })",
};

/** Operations without a method: for browsers, which have a cookie and read streams; for readers of public pages; for reverse proxies. */
export const WITHOUT_METHOD: readonly string[] = [
  "changes.stream",
  "check.http",
  "monitors.push",
  "ofrep.events",
  "session.create",
  "session.end",
  "session.read",
  "status.badge",
  "status.calendar",
  "status.feed",
  "status.icon",
  "status.incident",
  "status.page",
  "status.subscribe",
  "status.subscribe_form",
  "status.subscription",
  "status.subscription_change",
  "witness.peer.add",
  "witness.peer.checkpoint",
  "witness.tlog.checkpoint",
  "witness.tlog.tile",
];
