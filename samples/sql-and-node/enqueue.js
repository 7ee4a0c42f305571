// Adds jobs that run in Java. DATABASE_URL names the database.
const { makeWorkerUtils, quickAddJob } = require("graphile-worker");

const connectionString = process.env.DATABASE_URL;

async function main() {
  // One job and done: connects, adds, disconnects.
  await quickAddJob(
    { connectionString },
    "make_thumbnail",
    { url: "https://example.org/node.png", max_width: 640 },
    { jobKey: "thumbnail:node.png", maxAttempts: 3 },
  );

  // In a server: connected for as long as it runs.
  const workerUtils = await makeWorkerUtils({ connectionString });
  try {
    for (const i of [1, 2, 3]) {
      await workerUtils.addJob("make_thumbnail", { url: `https://example.org/album/${i}.png` }, { queueName: "album" });
    }
  } finally {
    await workerUtils.release();
  }
}

main().catch((error) => {
  console.error(error);
  process.exitCode = 1;
});
