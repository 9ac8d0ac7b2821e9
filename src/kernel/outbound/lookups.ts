import dns from "node:dns";
import { LruMap } from "../limits/lru-map.ts";
import { type Cancel, monotonicMs, realTimeout } from "../time/clock.ts";
import {
  RECORDS_MAX,
  RESPONSE_CODES,
  type RecordType,
  type Response,
  tooManyRecords,
} from "./dns/message.ts";
import { describeErrors, LookupFailure, NameServers, type ServerErrors } from "./dns/name-servers.ts";
import { SystemNames } from "./dns/system-names.ts";
import type { Deadline, Settle } from "./outcome.ts";
import { OutboundFailure } from "./outcome.ts";

/**
 * Concurrent lookups of one account. Most names take milliseconds, so that thousands of monitors can look up theirs in a
 * second; names that hang, for a minute and more, take no place of other accounts.
 */
export const LOOKUPS_PER_ACCOUNT_MAX = 64;
/**
 * Concurrent lookups in total. Each takes two of the 65,536 numbers that a DNS question can have, and the search for a free
 * number does not end when there is none.
 */
export const LOOKUPS_MAX = 8_192;
/** Lookups of an account. */
interface Account {
  inFlight: number;
  /** Requests that wait for a place, in order. */
  readonly waiting: Set<() => void>;
}

/**
 * Looks up names, with a limit for each account. A lookup keeps its slot until the name servers respond or it is abandoned,
 * even when no request waits for it any more.
 */
export class Lookups {
  /**
   * Questions without a response so far. Requests for the same name share one, of other accounts too; it takes a slot of
   * the first account.
   */
  private readonly questions = new Map<string, Asked>();
  private readonly accounts = new Map<number | null, Account>();
  private readonly nameServers = new NameServers();

  constructor(private readonly resolver: Resolver) {}

  /**
   * The addresses of a name. An account without a free place waits for one until its request's deadline.
   * @throws OutboundFailure `dns`, `timeout`; `local` when no place was free in time: then nothing is known of the name
   */
  async addressesOf(host: string, account: number | null, deadline: Deadline): Promise<readonly string[]> {
    const addresses = await this.within({ host }, account, deadline);
    if (addresses.length === 0) throw new OutboundFailure("dns", UNRESOLVED);
    return addresses;
  }

  /**
   * The values of a name's records of one type, as the system's name servers have them, or the `chosen` one. Limits and errors are
   * those of {@link addressesOf}.
   */
  async recordsOf(
    host: string,
    type: RecordType,
    account: number | null,
    deadline: Deadline,
    chosen?: ChosenServer,
  ): Promise<readonly string[]> {
    const values = await this.within({ host, type, chosen }, account, deadline);
    if (values.length === 0) throw new OutboundFailure("dns", noRecord(type));
    return values;
  }

  private within(query: Query, account: number | null, deadline: Deadline): Promise<readonly string[]> {
    return deadline.within<readonly string[]>((settle) => this.seek(query, account, settle));
  }

  private seek(query: Query, of: number | null, settle: Settle<readonly string[]>): void {
    const account = this.accounts.get(of) ?? { inFlight: 0, waiting: new Set() };
    const question = this.questions.get(keyOf(query));
    if (question !== undefined) {
      this.await(question, settle);
    } else if (this.questions.size >= LOOKUPS_MAX) {
      settle.reject(new OutboundFailure("local", "this server has no capacity for another lookup"));
    } else if (account.inFlight >= LOOKUPS_PER_ACCOUNT_MAX) {
      this.wait(account, () => this.seek(query, of, settle), settle);
    } else {
      this.accounts.set(of, account);
      account.inFlight += 1;
      this.await(
        this.ask(query, () => this.release(of, account)),
        settle,
      );
    }
  }

  private await({ values, errors }: Asked, settle: Settle<readonly string[]>): void {
    values.then(settle.resolve, settle.reject);
    settle.onAbandoned(() => {
      const why = describeErrors(errors);
      // Without name servers, it is the timeout of the request.
      if (why !== null) settle.reject(new OutboundFailure("timeout", `${why} in time`));
    });
  }

  private wait(account: Account, again: () => void, settle: Settle<readonly string[]>): void {
    const turn = (): void => {
      settle.onAbandoned(() => {});
      again();
    };
    account.waiting.add(turn);
    settle.onAbandoned(() => {
      account.waiting.delete(turn);
      const why = `${LOOKUPS_PER_ACCOUNT_MAX} other names of this account wait for name servers`;
      settle.reject(new OutboundFailure("local", why));
    });
  }

  /** An empty list: the name has no such record. Errors are those of the resolver. */
  private ask(query: Query, release: () => void): Asked {
    const { host, type, chosen } = query;
    const key = keyOf(query);
    const errors: ServerErrors = new Map();
    const found =
      chosen === undefined || type === undefined
        ? this.resolver.resolve(host, type, errors)
        : this.askChosen(host, type, chosen, errors);
    const values = found
      .catch(noneUnlessKnown)
      .then(limited)
      .finally(() => {
        this.questions.delete(key);
        release();
      });
    const asked = { values, errors };
    this.questions.set(key, asked);
    return asked;
  }

  private async askChosen(
    name: string,
    type: RecordType,
    chosen: ChosenServer,
    errors: ServerErrors,
  ): Promise<readonly string[]> {
    const asking = { errors, name: chosen.name };
    return valuesIn(await this.nameServers.ask(chosen.servers, { name, type }, asking), type);
  }

  private release(of: number | null, account: Account): void {
    account.inFlight -= 1;
    for (const turn of account.waiting) {
      if (account.inFlight >= LOOKUPS_PER_ACCOUNT_MAX) return;
      account.waiting.delete(turn);
      turn();
    }
    if (account.inFlight === 0) this.accounts.delete(of);
  }
}

/** @throws OutboundFailure `dns` when there are more than {@link RECORDS_MAX} */
function limited<T>(records: readonly T[]): readonly T[] {
  if (records.length > RECORDS_MAX) throw tooManyRecords();
  return records;
}

/** @throws OutboundFailure with the reason, where it is known */
function noneUnlessKnown(error: unknown): readonly string[] {
  if (error instanceof LookupFailure) throw new OutboundFailure("dns", error.message);
  if (error instanceof OutboundFailure) throw error;
  return [];
}

const UNRESOLVED = "the name could not be resolved";

function noRecord(type: RecordType): string {
  return `no ${type} record was found`;
}

/** The values in a response. @throws LookupFailure for a response without records of the type */
function valuesIn({ values, code }: Response, type: RecordType): readonly string[] {
  if (values.length > 0) return values;
  const reason = code === RESPONSE_CODES.noSuchName ? ": the name does not exist" : "";
  throw new LookupFailure(noRecord(type) + reason);
}

/** A name server that a request names, in place of those of the system. */
export interface ChosenServer {
  /** How errors name it. */
  readonly name: string;
  /** Its addresses with the port, which have been checked. */
  readonly servers: readonly string[];
}

interface Query {
  readonly host: string;
  /** Undefined: addresses, as connections need them. */
  readonly type?: RecordType | undefined;
  readonly chosen?: ChosenServer | undefined;
}

/** A lookup without a response so far. */
interface Asked {
  readonly values: Promise<readonly string[]>;
  readonly errors: ServerErrors;
}

function keyOf({ host, type, chosen }: Query): string {
  return `${type ?? ""} ${host} ${chosen?.servers.join() ?? ""}`;
}

/** Finds the records of a name. */
export interface Resolver {
  /**
   * All addresses of a name, at least one; with a `type`, the values of its records of this type, at least one. `errors`
   * receives what went wrong, while it does.
   * @throws LookupFailure with the reason; Error if there is none; OutboundFailure `dns` for too many records.
   */
  resolve(host: string, type?: RecordType, errors?: ServerErrors): Promise<readonly string[]>;
}

/** Shortest time between two reads of the system's list of name servers. */
export const SERVERS_CHECK_MS = 1_000;
/**
 * How long the IPv6 addresses of a name are waited for once its IPv4 addresses are known: some name servers drop questions for
 * them (RFC 8305, section 3). As long as an address is waited for until the next one is tried, since they are only tried next.
 */
const IPV6_DELAY_MS = 250;
/** Names whose addresses are remembered as long as they are valid: of at most {@link RECORDS_MAX}, a few mebibytes in all. */
const ADDRESSES_REMEMBERED_MAX = 2_048;
/** Longest time for which addresses are remembered: name servers of strangers choose their validity. */
const REMEMBERED_SECONDS_MAX = 300;

/**
 * Reads the hosts file and queries the system's name servers. The system's own `getaddrinfo` would block one of the few
 * threads that also read files: a few names that hang would stop everything. The runtime's resolver would parse every record
 * of a response, 100 ms for one of 64 KiB.
 */
export function createSystemResolver(
  systemServers = () => new dns.Resolver().getServers(),
  names = new SystemNames(),
): Resolver {
  const nameServers = new NameServers();
  const remembered = new LruMap<string, { readonly until: number; readonly addresses: readonly string[] }>(
    ADDRESSES_REMEMBERED_MAX,
  );
  /** The name servers in use: the process reads them before its first lookup, and later only after a failure. */
  let inUse: readonly string[] | null = null;
  let listed: readonly string[] | null = null;
  let lookedAt = Number.NEGATIVE_INFINITY;
  /** Whether the system lists other servers than before, which are used from now on. */
  const haveChanged = (): boolean => {
    if (monotonicMs() - lookedAt < SERVERS_CHECK_MS) return false;
    lookedAt = monotonicMs();
    const now = systemServers();
    if (now.join() === listed?.join()) return false;
    listed = now;
    inUse = now;
    return true;
  };
  const ask = (name: string, type: RecordType, errors: ServerErrors, goesOn?: () => boolean) =>
    nameServers.ask(inUse ?? [], { name, type }, { patience: names.patience, errors, goesOn });
  const remember = (host: string, responses: readonly Response[]): readonly string[] => {
    // IPv4 first: it works in more networks than IPv6 does.
    const addresses = [...new Set(responses.flatMap(({ values }) => values))];
    const seconds = Math.min(REMEMBERED_SECONDS_MAX, ...validities(responses));
    if (addresses.length > 0 && seconds > 0)
      remembered.set(host, { until: monotonicMs() + seconds * 1_000, addresses });
    return addresses;
  };
  const addressesOf = async (host: string, errors: ServerErrors): Promise<readonly string[]> => {
    const addresses = names.addressesOf(host);
    if (addresses.length > 0) return addresses;
    const known = remembered.get(host);
    if (known !== undefined && known.until > monotonicMs()) return known.addresses;
    let failure: LookupFailure | null = null;
    let exists = false;
    for (const name of names.candidates(host)) {
      let isEnough = false;
      const ipv4 = ask(name, "A", errors);
      const ipv6 = ask(name, "AAAA", errors, () => !isEnough);
      const { responses, error, isWhole } = await answered(ipv4, ipv6);
      isEnough = true;
      const addresses = remember(host, responses);
      if (addresses.length === 0) {
        failure ??= error;
        exists ||= responses.some(({ code }) => code === RESPONSE_CODES.ok);
        continue;
      }
      if (!isWhole)
        ipv6.then(
          (late) => remember(host, [...responses, late]),
          () => undefined,
        );
      return addresses;
    }
    const reason = exists ? "it has no addresses" : "it does not exist";
    throw failure ?? new LookupFailure(`${UNRESOLVED}: ${reason}`);
  };
  const recordsOf = async (
    host: string,
    type: RecordType,
    errors: ServerErrors,
  ): Promise<readonly string[]> => {
    return valuesIn(await ask(host, type, errors), type);
  };
  return {
    async resolve(host, type, errors = new Map()) {
      listed ??= systemServers();
      inUse ??= dns.getServers();
      const find = () => (type === undefined ? addressesOf(host, errors) : recordsOf(host, type, errors));
      try {
        return await find();
      } catch (error) {
        // The machine may have moved to another network, which has other name servers.
        if (!(error instanceof LookupFailure) || !haveChanged()) throw error;
        errors.clear();
        return find();
      }
    },
  };
}

/** What is known of the addresses of a name. */
interface Answered {
  readonly responses: readonly Response[];
  /** Why a response is missing. */
  readonly error: LookupFailure | null;
  /** Whether both questions have ended. */
  readonly isWhole: boolean;
}

/**
 * The responses that came, and why others did not. That for IPv6 is not waited for much longer than for IPv4 addresses. The
 * other way round would be wrong: where IPv6 leads nowhere, its addresses alone are a failure.
 *
 * @throws OutboundFailure that other name servers would not change
 */
async function answered(ipv4: Promise<Response>, ipv6: Promise<Response>): Promise<Answered> {
  const ended: PromiseSettledResult<Response>[] = [];
  const both = Promise.allSettled([ipv4, ipv6]);
  const delay = Promise.withResolvers<void>();
  let cancel: Cancel = () => undefined;
  ipv4.then(
    (value) => {
      ended.push({ status: "fulfilled", value });
      if (value.values.length > 0) cancel = realTimeout(IPV6_DELAY_MS, delay.resolve);
    },
    () => undefined,
  );
  const results = (await Promise.race([both, delay.promise])) ?? ended;
  cancel();
  const responses: Response[] = [];
  let error: LookupFailure | null = null;
  for (const result of results) {
    if (result.status === "fulfilled") responses.push(result.value);
    else if (result.reason instanceof LookupFailure) error = result.reason;
    else throw result.reason;
  }
  return { responses, error, isWhole: results !== ended };
}

/** Seconds for which the records of responses are valid. */
function validities(responses: readonly Response[]): number[] {
  return responses.filter(({ values }) => values.length > 0).map(({ ttl }) => ttl);
}
