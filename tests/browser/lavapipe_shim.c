/* Lets Chromium use lavapipe, Mesa's software driver, in place of SwiftShader.
 *
 * Without a GPU that can share textures, Chromium loads SwiftShader from libvk_swiftshader.so next
 * to its executable and checks its vendor and device ids. Lavapipe is ten times as fast and has
 * f16. This library is installed under that file name and forwards all calls to lavapipe, except
 * that it reports SwiftShader's ids. LAVAPIPE is the driver's path. */
#define VK_NO_PROTOTYPES
#include <dlfcn.h>
#include <string.h>
#include <vulkan/vulkan.h>

#define PUBLIC             __attribute__((visibility("default")))
#define SWIFTSHADER_VENDOR 0x1AE0
#define SWIFTSHADER_DEVICE 0xC0DE

typedef PFN_vkVoidFunction device_address_fn(VkInstance instance, const char *name);
typedef VkResult negotiate_fn(uint32_t *version);

/* Global, because the loader's interface has no context argument. */
static struct {
    PFN_vkGetInstanceProcAddr address;
    device_address_fn *device_address;
    negotiate_fn *negotiate;
    PFN_vkGetPhysicalDeviceProperties properties;
    PFN_vkGetPhysicalDeviceProperties2 properties2;
} driver;

static void open_driver(void)
{
    if (driver.address)
        return;
    void *library = dlopen(LAVAPIPE, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return;
    *(void **)&driver.negotiate = dlsym(library, "vk_icdNegotiateLoaderICDInterfaceVersion");
    *(void **)&driver.device_address = dlsym(library, "vk_icdGetPhysicalDeviceProcAddr");
    *(void **)&driver.address = dlsym(library, "vk_icdGetInstanceProcAddr");
}

static void rename_device(VkPhysicalDeviceProperties *p)
{
    p->vendorID = SWIFTSHADER_VENDOR;
    p->deviceID = SWIFTSHADER_DEVICE;
}

static VKAPI_ATTR void VKAPI_CALL properties(VkPhysicalDevice device, VkPhysicalDeviceProperties *p)
{
    driver.properties(device, p);
    rename_device(p);
}

static VKAPI_ATTR void VKAPI_CALL properties2(VkPhysicalDevice device,
                                              VkPhysicalDeviceProperties2 *p)
{
    driver.properties2(device, p);
    rename_device(&p->properties);
}

/* The driver's function, or our replacement. "...2" is also requested as "...2KHR". */
static PFN_vkVoidFunction with_our_properties(const char *name, PFN_vkVoidFunction f)
{
    static const char properties2_name[] = "vkGetPhysicalDeviceProperties2";
    if (!f)
        return f;
    if (!strcmp(name, "vkGetPhysicalDeviceProperties")) {
        driver.properties = (PFN_vkGetPhysicalDeviceProperties)f;
        return (PFN_vkVoidFunction)properties;
    }
    if (!strncmp(name, properties2_name, sizeof properties2_name - 1)) {
        driver.properties2 = (PFN_vkGetPhysicalDeviceProperties2)f;
        return (PFN_vkVoidFunction)properties2;
    }
    return f;
}

PUBLIC PFN_vkVoidFunction vk_icdGetInstanceProcAddr(VkInstance instance, const char *name)
{
    open_driver();
    return driver.address ? with_our_properties(name, driver.address(instance, name)) : NULL;
}

PUBLIC PFN_vkVoidFunction vk_icdGetPhysicalDeviceProcAddr(VkInstance instance, const char *name)
{
    open_driver();
    return driver.device_address ? with_our_properties(name, driver.device_address(instance, name))
                                 : NULL;
}

PUBLIC VkResult vk_icdNegotiateLoaderICDInterfaceVersion(uint32_t *version)
{
    open_driver();
    return driver.negotiate ? driver.negotiate(version) : VK_ERROR_INCOMPATIBLE_DRIVER;
}

PUBLIC PFN_vkVoidFunction vkGetInstanceProcAddr(VkInstance instance, const char *name)
{
    return strcmp(name, "vkGetInstanceProcAddr") ? vk_icdGetInstanceProcAddr(instance, name)
                                                 : (PFN_vkVoidFunction)vkGetInstanceProcAddr;
}
