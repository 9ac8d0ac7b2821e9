// Answers every request with a few bytes, and does nothing else: how long that takes is what the machine, its load and the client that
// measures take. Prints its URL.
const server = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => Response.json({ balance: 0 }) });
console.log(`http://127.0.0.1:${server.port}`);
