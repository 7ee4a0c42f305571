/** Recurring jobs: crontabs, their text format, and their administration. */
@NullMarked
package dev.pgworker.crontab;

import org.jspecify.annotations.NullMarked;
