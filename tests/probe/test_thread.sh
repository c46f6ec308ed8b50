#!/bin/sh
# The whole way from image to report, as tests/thread asks it of DynamoRIO.
# ctest: release only
RACE_ENGINE=probe exec "$RACE_SOURCE/tests/thread/test_thread.sh"
