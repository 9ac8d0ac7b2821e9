export type { AnswerOf, InputOf, OperationName, QueryOf } from "./api.ts";
export type { Account } from "./areas/account.ts";
export type { Buckets, Catch, Events } from "./areas/catch.ts";
export type { EvaluationContext, FlagConfigOptions, Flags, IsEnabledOptions } from "./areas/flags.ts";
export type { KeyAsk, KeyClient, Keys } from "./areas/keys.ts";
export type { AcquireOptions, Locks } from "./areas/locks.ts";
export type * from "./areas/methods.ts";
export type { CheckOptions, Monitors, PingOptions } from "./areas/monitors.ts";
export {
  type Delivery,
  type DeliveryHeaders,
  type VerifyDeliveryOptions,
  verifyDelivery,
} from "./delivery.ts";
export {
  type ClientErrorCode,
  type ErrorExtras,
  NinefoldConnectionError,
  NinefoldError,
} from "./errors.ts";
export type { ErrorCode, Operations } from "./generated/api.ts";
export type { HeldLock, WithLockOptions } from "./hold.ts";
export { Ninefold } from "./ninefold.ts";
export type { ChangeOptions, FetchLike, NinefoldOptions, RequestOptions } from "./options.ts";
export type { Pages } from "./pages.ts";
export type { Reservation, ReservedWork, Used } from "./reserve.ts";
export type { Answer } from "./transport.ts";
