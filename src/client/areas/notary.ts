import type { Answers, Api, ListOf, PageQuery } from "../api.ts";
import type { StorageBody } from "../generated/api.ts";
import type { ChangeOptions, RequestOptions } from "../options.ts";

/** A chain of signed receipts. */
export class Notary {
  readonly receipts: Receipts;
  readonly storage: Storage;

  constructor(private readonly api: Api) {
    this.receipts = new Receipts(api);
    this.storage = new Storage(api);
  }

  /** Creates the project's chain and key pair; `success` is false if it exists. */
  init(options?: ChangeOptions): Answers<"witness.init"> {
    return this.api.call("witness.init", {}, options);
  }

  /**
   * Appends a log, an object with at least one member, and returns its receipt.
   * @throws NinefoldError `conflict` before {@link Notary.init}.
   */
  log(entry: object, options?: ChangeOptions): Answers<"witness.log"> {
    return this.api.call("witness.log", { body: { log: entry } }, options);
  }

  /** Verifies a receipt of the project's chain on the server. Never rejects for an invalid receipt; check `valid`. */
  verify(receipt: unknown, options?: ChangeOptions): Answers<"witness.verify"> {
    return this.api.call("witness.verify", { body: { receipt } }, options);
  }

  /** Returns the public key of any chain. Needs no key. */
  publicKey(chainId: string, options?: RequestOptions): Answers<"witness.pubkey"> {
    return this.api.call("witness.pubkey", { params: { chainId } }, options);
  }
}

/** The receipts of the project's chain. */
export class Receipts {
  constructor(private readonly api: Api) {}

  /** Lists receipts, newest first. */
  list(query: PageQuery = {}, options: RequestOptions = {}): ListOf<"witness.receipts.list", "receipts"> {
    return this.api.list("witness.receipts.list", "receipts", { query }, options);
  }

  /** Returns a receipt by its position in the chain. */
  get(sequenceId: string | number, options?: RequestOptions): Answers<"witness.receipts.read"> {
    return this.api.call("witness.receipts.read", { params: { sequence_id: String(sequenceId) } }, options);
  }
}

/** The storage that receipts are copied to. */
export class Storage {
  constructor(private readonly api: Api) {}

  /** Sets the storage for all later receipts. */
  configure(body: StorageBody, options?: ChangeOptions): Answers<"witness.config.set"> {
    return this.api.call("witness.config.set", { body }, options);
  }

  /** Returns the current storage with masked secrets. @throws NinefoldError `not_found` if there is none. */
  get(options?: RequestOptions): Answers<"witness.config.read"> {
    return this.api.call("witness.config.read", {}, options);
  }
}
