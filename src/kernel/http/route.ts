import type { Static, TObject, TSchema } from "@sinclair/typebox";
import type { ErrorCode } from "../errors.ts";
import type { Tx } from "../storage/tx.ts";
import type { BodyBounds } from "./body.ts";
import type { Caller } from "./caller.ts";
import type { OperationName } from "./operations.ts";
import type { AcrossNetwork } from "./perform.ts";

/** Methods that a route can have. HEAD comes with every GET. */
export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

/** The declaration of an endpoint: what is checked, what is promised, and what the OpenAPI document says of it. */
export interface RouteSpec<P extends TObject, Q extends TObject, B extends TObject> {
  readonly operation: OperationName;
  /** One line for lists of endpoints. */
  readonly summary: string;
  /** More, where one line is not enough. Markdown. */
  readonly description?: string;
  readonly params?: P;
  readonly query?: Q;
  /** Lists: the cursor is a value that the items show anyway, and goes out as it is. */
  readonly openCursor?: boolean;
  readonly body?: B;
  /** Bounds of the body where {@link SMALL_BODY} does not do. */
  readonly bodyBounds?: BodyBounds;
  /**
   * Public endpoints that take any bytes instead of a JSON object: says what they are. Nothing is read before the
   * handler asks for it, and no input is refused.
   */
  readonly anyBody?: string;
  /** Status of a plain result; 200 when left out. */
  readonly status?: number;
  /** Schema of every successful answer, by status. */
  readonly answers: Readonly<Record<number, TSchema>>;
  /** Codes that this endpoint adds to those which every endpoint of its kind can give. */
  readonly errors?: readonly ErrorCode[];
  /** Public endpoints: a gate that every attempt passes before its input is looked at. Throws an ApiError to refuse. */
  readonly admit?: (clientAddress: string) => void;
  /** A body that works. */
  readonly example?: Readonly<Record<string, unknown>>;
}

/** A request that has passed every gate, as its handler sees it. */
export interface Call<P, Q, B> {
  readonly caller: Caller;
  readonly params: P;
  readonly query: Q;
  readonly body: B;
  /** The exact text of the body. */
  readonly bodyText: string;
  readonly requestId: string;
  /** Milliseconds since the epoch, when the request came in. */
  readonly receivedAt: number;
  readonly request: Request;
  /** Aborted when the client goes away. */
  readonly signal: AbortSignal;
  /** Lets this request wait longer than the server's idle time-out. */
  liftIdleTimeout(): void;
  /** Charges the operation and runs the synchronous work in one unit of work: see `Performing.perform`. */
  perform<T extends object>(work: (tx: Tx) => T): Promise<T>;
  /** The same with the network in between: see `Performing.performAcross`. */
  performAcross<C, R, T extends object>(phases: AcrossNetwork<C, R, T>): Promise<T>;
}

/** A public request: there is no caller, no charge and no `Idempotency-Key`. */
export interface PublicCall<P, Q, B> {
  readonly params: P;
  readonly query: Q;
  readonly body: B;
  readonly requestId: string;
  readonly receivedAt: number;
  readonly request: Request;
  readonly signal: AbortSignal;
  /** The client's address, behind trusted proxies the one that they saw. */
  readonly clientAddress: string;
  /** The address at the other end of the socket. */
  readonly socketAddress: string | null;
  /**
   * The exact bytes of the body, for endpoints that take any. Once.
   * @throws ApiError `request_too_large` as soon as that is known.
   */
  readBytes(): Promise<Uint8Array>;
}

/** The handler of an endpoint that requires a key. */
export type Handler<P extends TObject, Q extends TObject, B extends TObject> = (
  call: Call<Static<P>, Static<Q>, Static<B>>,
) => object | Promise<object>;

/** The handler of a public endpoint. */
export type PublicHandler<P extends TObject, Q extends TObject, B extends TObject> = (
  call: PublicCall<Static<P>, Static<Q>, Static<B>>,
) => object | Promise<object>;

/** A declared endpoint, for the OpenAPI document and the tests that go over all of them. */
export interface DeclaredRoute {
  readonly method: Method;
  /** With parameters in Elysia's form, `/v1/meter/:meterId/deduct`. */
  readonly path: string;
  readonly spec: RouteSpec<TObject, TObject, TObject>;
}
