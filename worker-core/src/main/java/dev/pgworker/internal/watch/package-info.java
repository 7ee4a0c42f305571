/** Watches the database: notifications, migrations, snapshots, and what finished jobs leave. */
@NullMarked
package dev.pgworker.internal.watch;

import org.jspecify.annotations.NullMarked;
