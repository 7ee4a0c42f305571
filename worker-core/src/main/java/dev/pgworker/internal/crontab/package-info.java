/** When recurring jobs are due, and adding their jobs. */
@NullMarked
package dev.pgworker.internal.crontab;

import org.jspecify.annotations.NullMarked;
