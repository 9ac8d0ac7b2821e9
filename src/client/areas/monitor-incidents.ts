import type { Answers, Api, ListOf, PageQuery, QueryOf } from "../api.ts";
import type {
  ChannelCreateBody,
  ChannelPatch,
  IncidentCreateBody,
  IncidentPatch,
  IncidentUpdateBody,
} from "../generated/api.ts";
import type { ChangeOptions, RequestOptions } from "../options.ts";

/** What has gone wrong: found by monitors, or told by people. */
export class MonitorIncidents {
  constructor(private readonly api: Api) {}

  /** Tells of an incident; monitors open and resolve their own. */
  create(body: IncidentCreateBody, options?: ChangeOptions): Answers<"monitors.incidents.create"> {
    return this.api.call("monitors.incidents.create", { body }, options);
  }

  /** Incidents, newest first. */
  list(
    query: QueryOf<"monitors.incidents.list"> = {},
    options: RequestOptions = {},
  ): ListOf<"monitors.incidents.list", "incidents"> {
    return this.api.list("monitors.incidents.list", "incidents", { query }, options);
  }

  /** An incident with what people have said of it. */
  get(incidentId: string, options?: RequestOptions): Answers<"monitors.incidents.read"> {
    return this.api.call("monitors.incidents.read", { params: { incident_id: incidentId } }, options);
  }

  /** Changes its title, and whether status pages show it. */
  update(
    incidentId: string,
    body: IncidentPatch,
    options?: ChangeOptions,
  ): Answers<"monitors.incidents.change"> {
    return this.api.call("monitors.incidents.change", { params: { incident_id: incidentId }, body }, options);
  }

  /** Says that somebody takes care of it, which ends the repeats of its alert. */
  acknowledge(incidentId: string, options?: ChangeOptions): Answers<"monitors.incidents.acknowledge"> {
    return this.api.call("monitors.incidents.acknowledge", { params: { incident_id: incidentId } }, options);
  }

  /** Says how far people are; `resolved` ends one that people told of. @throws NinefoldError `conflict` */
  say(
    incidentId: string,
    body: IncidentUpdateBody,
    options?: ChangeOptions,
  ): Answers<"monitors.incidents.update"> {
    return this.api.call("monitors.incidents.update", { params: { incident_id: incidentId }, body }, options);
  }
}

/** Through which people are told. */
export class MonitorChannels {
  constructor(private readonly api: Api) {}

  /** Makes a channel. */
  create(body: ChannelCreateBody, options?: ChangeOptions): Answers<"monitors.channels.create"> {
    return this.api.call("monitors.channels.create", { body }, options);
  }

  /** Channels, newest first. */
  list(query: PageQuery = {}, options: RequestOptions = {}): ListOf<"monitors.channels.list", "channels"> {
    return this.api.list("monitors.channels.list", "channels", { query }, options);
  }

  /** A channel, without its secrets. */
  get(channelId: string, options?: RequestOptions): Answers<"monitors.channels.read"> {
    return this.api.call("monitors.channels.read", { params: { channel_id: channelId } }, options);
  }

  /** Changes a channel; what is left out stays, and `config` is given whole. */
  update(
    channelId: string,
    body: ChannelPatch,
    options?: ChangeOptions,
  ): Answers<"monitors.channels.change"> {
    return this.api.call("monitors.channels.change", { params: { channel_id: channelId }, body }, options);
  }

  /** Deletes a channel. */
  delete(channelId: string, options?: ChangeOptions): Answers<"monitors.channels.delete"> {
    return this.api.call("monitors.channels.delete", { params: { channel_id: channelId } }, options);
  }

  /** Sends a test, once, and says what became of it. */
  test(channelId: string, options?: ChangeOptions): Answers<"monitors.channels.test"> {
    return this.api.call("monitors.channels.test", { params: { channel_id: channelId } }, options);
  }
}
