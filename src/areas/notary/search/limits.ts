/** Fields of a chain that are indexed: each is a row per receipt. */
export const INDEX_FIELDS_MAX = 5;

/** Characters of an indexed field's path. */
export const POINTER_LENGTH_MAX = 200;

/** Characters of an indexed value; longer ones are not indexed. Names, ids and addresses are shorter. */
export const VALUE_LENGTH_MAX = 512;
