import type { Answers, Api, ListOf, QueryOf } from "../api.ts";
import type {
  RelayBody,
  RelayEndpointBody,
  RelayEndpointPatch,
  RelayEndpointTestBody,
  RelayMessageBody,
  RelayMessageResendBody,
  RelayResendBody,
  RelaySecretRotateBody,
  ScheduleBody,
  ScheduleUpdateBody,
} from "../generated/api.ts";
import type { ChangeOptions, RequestOptions } from "../options.ts";

/** Signed webhooks: scheduled deliveries, and messages to subscribed endpoints. */
export class Relay {
  /** Webhook endpoints. */
  readonly endpoints: RelayEndpoints;
  /** Messages to all subscribed endpoints. */
  readonly messages: RelayMessages;
  /** Recurring webhooks, by cron expression. */
  readonly schedules: RelaySchedules;

  constructor(private readonly api: Api) {
    this.endpoints = new RelayEndpoints(api);
    this.messages = new RelayMessages(api);
    this.schedules = new RelaySchedules(api);
  }

  /** Schedules a delivery. A `deduplication_id` that was used within a day returns the earlier delivery. */
  schedule(body: RelayBody, options?: ChangeOptions): Answers<"relay.schedule"> {
    return this.api.call("relay.schedule", { body }, options);
  }

  /**
   * Lists deliveries, newest first; with `filter: "pulse"` only alerts of monitors, with `status: "failed"` only
   * failed ones.
   */
  list(query: QueryOf<"relay.list"> = {}, options: RequestOptions = {}): ListOf<"relay.list", "deliveries"> {
    return this.api.list("relay.list", "deliveries", { query }, options);
  }

  /** Returns a delivery with the request and response of each attempt. */
  get(relayId: string, options?: RequestOptions): Answers<"relay.read"> {
    return this.api.call("relay.read", { params: { relay_id: relayId } }, options);
  }

  /** Cancels a delivery. @throws NinefoldError `conflict` after its first attempt. */
  cancel(relayId: string, options?: ChangeOptions): Answers<"relay.cancel"> {
    return this.api.call("relay.cancel", { params: { relay_id: relayId } }, options);
  }

  /** Resends a failed delivery with the same id. @throws NinefoldError `conflict` if it has not failed. */
  resend(relayId: string, options?: ChangeOptions): Answers<"relay.resend"> {
    return this.api.call("relay.resend", { params: { relay_id: relayId } }, options);
  }

  /** Resends many failed deliveries. With `dry_run` it only returns how many match. */
  resendFailed(body: RelayResendBody, options?: ChangeOptions): Answers<"relay.resends.start"> {
    return this.api.call("relay.resends.start", { body }, options);
  }

  /** Returns the progress of {@link resendFailed}. */
  resendProgress(resendId: string, options?: RequestOptions): Answers<"relay.resends.read"> {
    return this.api.call("relay.resends.read", { params: { resend_id: resendId } }, options);
  }

  /** Cancels {@link resendFailed}. Deliveries that were sent stay sent. */
  stopResend(resendId: string, options?: ChangeOptions): Answers<"relay.resends.stop"> {
    return this.api.call("relay.resends.stop", { params: { resend_id: resendId } }, options);
  }

  /** Returns the project's signing secret, for receivers; created on first use. */
  secret(options?: ChangeOptions): Answers<"relay.secret.reveal"> {
    return this.api.call("relay.secret.reveal", {}, options);
  }

  /** Rotates the signing secret. Both secrets sign for a grace period, by default 24 hours. */
  rotateSecret(body: RelaySecretRotateBody = {}, options?: ChangeOptions): Answers<"relay.secret.rotate"> {
    return this.api.call("relay.secret.rotate", { body }, options);
  }
}

/** The endpoints of a project. */
export class RelayEndpoints {
  constructor(private readonly api: Api) {}

  /**
   * Creates an endpoint. Its signing secret is shown in this response only. @throws NinefoldError `conflict` for a
   * name that exists.
   */
  create(body: RelayEndpointBody, options?: ChangeOptions): Answers<"relay.endpoints.create"> {
    return this.api.call("relay.endpoints.create", { body }, options);
  }

  /** Lists endpoints, newest first. */
  list(
    query: QueryOf<"relay.endpoints.list"> = {},
    options: RequestOptions = {},
  ): ListOf<"relay.endpoints.list", "endpoints"> {
    return this.api.list("relay.endpoints.list", "endpoints", { query }, options);
  }

  /** Returns an endpoint with its health and counts. */
  get(endpointId: string, options?: RequestOptions): Answers<"relay.endpoints.read"> {
    return this.api.call("relay.endpoints.read", { params: { endpoint_id: endpointId } }, options);
  }

  /** Updates the given fields; `state: "live"` also enables a disabled endpoint. */
  update(
    endpointId: string,
    body: RelayEndpointPatch,
    options?: ChangeOptions,
  ): Answers<"relay.endpoints.change"> {
    return this.api.call("relay.endpoints.change", { params: { endpoint_id: endpointId }, body }, options);
  }

  /** Deletes an endpoint. Its pending deliveries are cancelled. */
  delete(endpointId: string, options?: ChangeOptions): Answers<"relay.endpoints.delete"> {
    return this.api.call("relay.endpoints.delete", { params: { endpoint_id: endpointId } }, options);
  }

  /** Rotates the endpoint's secret. Both secrets sign for a grace period, by default 24 hours. */
  rotateSecret(
    endpointId: string,
    body: RelaySecretRotateBody = {},
    options?: ChangeOptions,
  ): Answers<"relay.endpoints.secret.rotate"> {
    const params = { endpoint_id: endpointId };
    return this.api.call("relay.endpoints.secret.rotate", { params, body }, options);
  }

  /** Sends a test event, regardless of the endpoint's event types and filter. */
  test(
    endpointId: string,
    body: RelayEndpointTestBody = {},
    options?: ChangeOptions,
  ): Answers<"relay.endpoints.test"> {
    return this.api.call("relay.endpoints.test", { params: { endpoint_id: endpointId }, body }, options);
  }
}

/** The messages of a project. */
export class RelayMessages {
  constructor(private readonly api: Api) {}

  /** Sends a message to all subscribed endpoints. A repeated message id returns the first response. */
  send(body: RelayMessageBody, options?: ChangeOptions): Answers<"relay.messages.send"> {
    return this.api.call("relay.messages.send", { body }, options);
  }

  /** Sends up to 100 messages, all or none. */
  sendMany(messages: RelayMessageBody[], options?: ChangeOptions): Answers<"relay.messages.batch"> {
    return this.api.call("relay.messages.batch", { body: { messages } }, options);
  }

  /** Lists messages, newest first. */
  list(
    query: QueryOf<"relay.messages.list"> = {},
    options: RequestOptions = {},
  ): ListOf<"relay.messages.list", "messages"> {
    return this.api.list("relay.messages.list", "messages", { query }, options);
  }

  /** Returns a message with its deliveries. */
  get(messageId: string, options?: RequestOptions): Answers<"relay.messages.read"> {
    return this.api.call("relay.messages.read", { params: { message_id: messageId } }, options);
  }

  /** Resends a message to the endpoints where it failed, or to one endpoint. */
  resend(
    messageId: string,
    body: RelayMessageResendBody = {},
    options?: ChangeOptions,
  ): Answers<"relay.messages.resend"> {
    return this.api.call("relay.messages.resend", { params: { message_id: messageId }, body }, options);
  }
}

/** The schedules of a project. */
export class RelaySchedules {
  constructor(private readonly api: Api) {}

  /** Creates a schedule that sends a webhook at the times of a cron expression. */
  create(body: ScheduleBody, options?: ChangeOptions): Answers<"relay.schedules.create"> {
    return this.api.call("relay.schedules.create", { body }, options);
  }

  /** Lists schedules without their payloads, newest first. */
  list(
    query: QueryOf<"relay.schedules.list"> = {},
    options: RequestOptions = {},
  ): ListOf<"relay.schedules.list", "schedules"> {
    return this.api.list("relay.schedules.list", "schedules", { query }, options);
  }

  /** Returns a schedule with its next five runs. */
  get(scheduleId: string, options?: RequestOptions): Answers<"relay.schedules.read"> {
    return this.api.call("relay.schedules.read", { params: { schedule_id: scheduleId } }, options);
  }

  /** Updates a schedule. Omitted fields stay unchanged. */
  update(
    scheduleId: string,
    body: ScheduleUpdateBody,
    options?: ChangeOptions,
  ): Answers<"relay.schedules.update"> {
    return this.api.call("relay.schedules.update", { params: { schedule_id: scheduleId }, body }, options);
  }

  /** Deletes a schedule. Deliveries of its runs are kept. */
  delete(scheduleId: string, options?: ChangeOptions): Answers<"relay.schedules.delete"> {
    return this.api.call("relay.schedules.delete", { params: { schedule_id: scheduleId } }, options);
  }

  /** Runs a schedule now, in addition to its regular runs. */
  run(scheduleId: string, options?: ChangeOptions): Answers<"relay.schedules.run"> {
    return this.api.call("relay.schedules.run", { params: { schedule_id: scheduleId } }, options);
  }
}
